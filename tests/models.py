"""Real models of the catalogue, found through the product's own door in the tests' cache folder.

Nothing is skipped when a model cannot be had: the test fails with the product's own sentence.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.checkpoint.view import Checkpoint

SMOLLM2 = "smollm2-135m-instruct"
QWEN_CODER = "qwen2.5-coder-0.5b-instruct"


@cache
def find_model(name: str, cache_dir: Path) -> Resolved:
    """The files of a model, fetched when they are not there yet. `cache_dir` is the fixture
    `model_cache`."""
    return resolve(name, cache_dir=cache_dir)


@cache
def open_model(name: str, cache_dir: Path) -> Checkpoint:
    return open_checkpoint(find_model(name, cache_dir))

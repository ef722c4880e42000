"""The default model for tests: fetched through the product's own door, once per clone.

The cache lies in pytest's own cache folder, or where EDGESERVE_TEST_CACHE says. Tests of the
command line build and prune in it, so it is never the user's. `edgeserve` processes that a test
starts get it through `EDGESERVE_CACHE`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.config import DEFAULT_MODEL


@pytest.fixture(scope="session")
def model_cache(pytestconfig: pytest.Config) -> Path:
    """The cache folder that all tests with real models share."""
    own = os.environ.get("EDGESERVE_TEST_CACHE")
    return Path(own) if own else Path(pytestconfig.cache.mkdir("edgeserve"))


@pytest.fixture(scope="session")
def default_model(model_cache: Path) -> Resolved:
    """SmolLM2-135M-Instruct as shipped, a GGUF."""
    return resolve(DEFAULT_MODEL, cache_dir=model_cache)

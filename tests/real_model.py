"""The default model for tests: fetched through the product's own door, once per clone.

The cache lies in pytest's own cache folder, so a fresh clone fetches, and nothing outside the clone
is touched. `edgeserve` processes that a test starts get it through `EDGESERVE_CACHE`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.config import DEFAULT_MODEL


@pytest.fixture(scope="session")
def model_cache(pytestconfig: pytest.Config) -> Path:
    """The cache folder that all tests with real models share."""
    return Path(pytestconfig.cache.mkdir("edgeserve"))


@pytest.fixture(scope="session")
def default_model(model_cache: Path) -> Resolved:
    """SmolLM2-135M-Instruct as shipped, a GGUF."""
    return resolve(DEFAULT_MODEL, cache_dir=model_cache)

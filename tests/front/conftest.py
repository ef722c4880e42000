from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Async tests, marked `anyio`, run on asyncio."""
    return "asyncio"

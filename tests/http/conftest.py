"""One server for the tests that do not change it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.http.stand_in import Running, running


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    with running(aliases=("other/name",)) as server:
        yield server


@pytest.fixture(scope="session")
def http(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=10) as client:
        yield client

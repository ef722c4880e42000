from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from edgeserve.config import EngineOptions
from edgeserve.engine.runtime import Runtime
from edgeserve.generation import Failed, Finished
from tests.engine.client import Client
from tests.hash_runtime import hash_runtime


@pytest.fixture
def start() -> Iterator[Callable[..., Client]]:
    """Starts clients; afterwards each has drained to nothing with all pages given back."""
    clients: list[Client] = []

    def start(runtime: Runtime | None = None, **options: object) -> Client:
        if runtime is None:
            runtime = hash_runtime(EngineOptions(checkpoint="hash", **options))
        clients.append(Client(runtime))
        return clients[-1]

    yield start
    for client in clients:
        client.service.close()
        stats = client.service.stats()
        assert stats.scheduling.resident == stats.scheduling.queued == 0
        assert stats.cache.free_pages + stats.cache.cached_pages == stats.cache.total_pages
        for id_, events in client.events.items():
            ends = [e for e in events if isinstance(e, (Finished, Failed))]
            assert len(ends) <= 1, f"request {id_} ended {len(ends)} times"

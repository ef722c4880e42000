from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from edgeserve.config import EngineOptions
from edgeserve.front.replica import Care
from edgeserve.front.status import State
from tests.faults.watched import CARE, ROOT, Start, Watched, is_alive


@pytest.fixture
def anyio_backend() -> str:
    """Async tests, marked `anyio`, run on asyncio."""
    return "asyncio"


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Starts replicas on the hash network; afterwards no process or descriptor is left."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    descriptors = len(os.listdir("/proc/self/fd"))
    started: list[Watched] = []
    pids: set[int] = set()

    async def start(checkpoint: str = "hash", care: Care = CARE, **options: object) -> Watched:
        watched = Watched(EngineOptions(checkpoint=checkpoint, **options), care)
        started.append(watched)
        await watched.until(State.READY)
        assert watched.replica.pid is not None
        pids.add(watched.replica.pid)
        return watched

    yield start
    for watched in started:
        if watched.replica.pid is not None:
            pids.add(watched.replica.pid)
        await watched.replica.close()
        assert len(watched.replica) == 0
    for pid in pids:
        assert not is_alive(pid)
    assert len(os.listdir("/proc/self/fd")) == descriptors

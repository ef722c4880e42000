"""Many requests of random length, a fifth of them left half-way: nothing is lost, nothing stays."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from edgeserve.config import EngineOptions
from edgeserve.errors import ShuttingDown
from edgeserve.front.admission import Admission
from edgeserve.front.replica import Replica
from edgeserve.front.router import Router
from tests.faults.watched import Start, make_request, read

pytestmark = pytest.mark.anyio

REQUESTS, CONCURRENCY = 200, 16


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class Churn:
    def __init__(self, router: Router, seed: int) -> None:
        self._router = router
        self._random = random.Random(seed)
        self._room = asyncio.Semaphore(CONCURRENCY)
        self.completed = 0
        self.left = 0

    async def run(self) -> None:
        await asyncio.gather(*(self._one() for _ in range(REQUESTS)))

    async def _one(self) -> None:
        random_ = self._random
        prompt = "x" * random_.randrange(1, 200)
        tokens = random_.randrange(1, 100)
        leaves = random_.random() < 0.2
        async with self._room:
            request = make_request(self._router, prompt, max_tokens=tokens, seed=tokens)
            ticket = await self._router.submit(request)
            if leaves:
                async with ticket:
                    await anext(ticket.events())
                self.left += 1
                return
            got, usage = await read(ticket)
            assert len(got) == usage.completion_tokens == tokens
            assert usage.prompt_tokens == len(prompt)
            self.completed += 1


async def test_three_rounds_lose_nothing_and_leave_nothing(start: Start) -> None:
    options = EngineOptions(checkpoint="hash", max_batch_size=8, kv_pool_pages=96)
    watched = await start("hash?step_us=50", max_batch_size=8, kv_pool_pages=96)
    replica: Replica = watched.replica
    admission = Admission(max_queued=64, seats=8)
    router = Router([replica], admission, options, ShuttingDown)
    assert replica.pid is not None
    sizes = []
    for round_ in range(3):
        churn = Churn(router, round_)
        await churn.run()
        assert churn.completed + churn.left == REQUESTS
        await watched.idle()
        assert (admission.active, admission.queued) == (0, 0)
        sizes.append(resident_bytes(replica.pid))
    assert sizes[2] - sizes[1] < 2 * 1024**2, f"memory grows: {sizes}"

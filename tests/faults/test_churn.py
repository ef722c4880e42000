"""Many requests of random length, a fifth of them left half-way: nothing is lost, nothing stays."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError, EngineUnavailable, ShuttingDown
from edgeserve.front.admission import Admission
from edgeserve.front.replica import Replica
from edgeserve.front.router import Router
from edgeserve.front.status import State
from tests.faults.watched import CARE, Start, ask, make_request, read

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


async def test_every_request_gets_an_answer_while_workers_are_killed(start: Start) -> None:
    options = EngineOptions(checkpoint="hash", max_batch_size=8)
    watched = await start("hash?step_us=200", CARE._replace(restarts=5), max_batch_size=8)
    admission = Admission(max_queued=64, seats=8)
    router = Router([watched.replica], admission, options, partial(EngineUnavailable, "down"))
    random_ = random.Random(7)
    answers: Counter[str] = Counter()

    async def client() -> None:
        for _ in range(12):
            await watched.until(State.READY)
            prompt, tokens = "x" * random_.randrange(1, 100), random_.randrange(1, 100)
            try:
                got = await ask(router, prompt, max_tokens=tokens)
            except EngineUnavailable:
                answers["refused"] += 1
            except EdgeserveError as error:
                answers[error.code] += 1
            else:
                assert len(got) == tokens
                answers["whole"] += 1

    async def killer() -> None:
        for _ in range(3):
            await watched.until(State.READY)
            whole = answers["whole"]
            while answers["whole"] < whole + 10:
                await asyncio.sleep(0.001)
            assert watched.replica.pid is not None
            os.kill(watched.replica.pid, signal.SIGKILL)
            await watched.until(State.RESTARTING)

    await asyncio.gather(killer(), *(client() for _ in range(CONCURRENCY)))
    assert sum(answers.values()) == 12 * CONCURRENCY
    assert set(answers) <= {"whole", "refused", "engine_unavailable"}
    assert answers["engine_unavailable"] > 0
    assert (admission.active, admission.queued) == (0, 0)
    await watched.until(State.READY)
    assert watched.replica.restarts == 3
    await watched.idle()

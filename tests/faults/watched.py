"""Replicas on the hash network whose changes can be awaited, and requests for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError
from edgeserve.front.replica import Care, Replica
from edgeserve.front.status import State
from edgeserve.front.worker_process import Heartbeat
from edgeserve.generation import GenerationRequest, Pieces, Usage
from edgeserve.sampling import SamplerSettings
from edgeserve.ticket import Generator, Ticket
from tests.hash_runtime import LOADER

ROOT = Path(__file__).resolve().parents[2]
HEARTBEAT = Heartbeat(interval_s=0.05, silent_s=0.6, stalled_s=60.0, exit_s=5.0)
CARE = Care(loader=LOADER, first_pause_s=0.02, heartbeat=HEARTBEAT, startup_timeout_s=30.0)


def make_request(generator: Generator, prompt: str = "abc", **fields: object) -> GenerationRequest:
    settings = {"max_tokens": 20, "ignore_eos": True, "seed": 0, **fields}
    sampler = SamplerSettings(seed=settings.pop("seed"))
    tokens = tuple(prompt.encode())
    return GenerationRequest(id=generator.next_id(), prompt=tokens, sampler=sampler, **settings)


async def read(ticket: Ticket) -> tuple[tuple[int, ...], Usage]:
    """All tokens of a ticket's only choice, and its usage."""
    async with ticket:
        tokens: list[int] = []
        async for event in ticket.events():
            assert isinstance(event, Pieces)
            for piece in event.pieces:
                tokens += piece.tokens
    assert ticket.usage is not None
    return tuple(tokens), ticket.usage


async def ask(generator: Generator, prompt: str = "abc", **fields: object) -> tuple[int, ...]:
    tokens, _ = await read(await generator.submit(make_request(generator, prompt, **fields)))
    return tokens


async def first_piece(ticket: Ticket) -> None:
    async for _ in ticket.events():
        return


class Watched:
    """A replica whose changes of state can be awaited."""

    def __init__(self, options: EngineOptions, care: Care) -> None:
        self._changed = asyncio.Event()
        self.states: list[State] = []
        self.replica = Replica(options, "hash", "hash", care, self._change)
        self.replica.start()

    def _change(self) -> None:
        if self.states[-1:] != [self.replica.status.state]:
            self.states.append(self.replica.status.state)
        self._changed.set()

    async def until(self, state: State) -> None:
        while self.replica.status.state is not state:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 30)

    async def idle(self) -> None:
        """Wait until the newest counters say that the engine has nothing left."""
        while True:
            stats = self.replica.stats()
            counts, cache = stats.scheduling, stats.cache
            done = counts.completed + counts.cancelled + counts.failed
            pages = cache.free_pages + cache.cached_pages == cache.total_pages
            if len(self.replica) == 0 and done == counts.submitted and pages:
                assert (counts.resident, counts.queued) == (0, 0)
                return
            await asyncio.sleep(HEARTBEAT.interval_s)  # a heartbeat brings the next counters


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def fails(ticket: Ticket) -> EdgeserveError:
    """The error that a ticket ends with."""
    with pytest.raises(EdgeserveError) as raised:
        await read(ticket)
    return raised.value


Start = Callable[..., Awaitable[Watched]]

"""A served model from the source its user wrote to the door its requests enter by."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from edgeserve.checkpoint.resolve import Resolved
from edgeserve.config import EngineOptions
from edgeserve.errors import Busy, CheckpointError, EdgeserveError, ModelLoading, ShuttingDown
from edgeserve.front.status import State, Status
from edgeserve.front.supervisor import Progress, Supervisor
from tests.faults.watched import CARE, ROOT, ask, fails, first_piece, make_request, read

pytestmark = pytest.mark.anyio


def found(options: EngineOptions, progress: Progress) -> Resolved:
    progress("fetch", 1, 2)
    progress("fetch", 2, 2)
    return Resolved(Path(options.checkpoint), "org/hash", "folder", "hash")


def missing(options: EngineOptions, _: Progress) -> Resolved:
    raise CheckpointError(f"'{options.checkpoint}' is not a model")


Make = Callable[..., Supervisor]


@pytest.fixture
async def make(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made: list[Supervisor] = []

    def make(checkpoint: str = "hash", resolve=found, **fields: object) -> Supervisor:
        on_change = fields.pop("on_change", lambda _: None)
        options = EngineOptions(checkpoint=checkpoint, **fields)
        made.append(Supervisor(options, CARE, resolve=resolve, on_change=on_change))
        made[-1].start()
        return made[-1]

    yield make
    for supervisor in made:
        await supervisor.close()
        assert supervisor.status.state is State.STOPPED


async def test_it_loads_with_progress_and_serves(make: Make) -> None:
    seen: list[Status] = []
    supervisor = make(on_change=seen.append)
    assert supervisor.status.state is State.LOADING
    with pytest.raises(ModelLoading):
        await supervisor.generator.submit(make_request(supervisor.generator))
    info = await supervisor.ready()
    assert (info.identity, info.name) == ("org/hash", "hash")
    assert [status.stage for status in seen] == ["fetch", "fetch", "load", ""]
    assert len(await ask(supervisor.generator)) == 20
    assert len(supervisor.stats()) == 1


async def test_a_source_that_is_not_found_is_told(make: Make) -> None:
    supervisor = make(resolve=missing)
    with pytest.raises(EdgeserveError, match="'hash' is not a model"):
        await supervisor.ready()
    assert supervisor.status == Status(State.FAILED, "'hash' is not a model")
    with pytest.raises(EdgeserveError):
        await supervisor.generator.submit(make_request(supervisor.generator))


async def test_a_model_that_does_not_load_is_told(make: Make) -> None:
    supervisor = make("hash?fail=1")
    with pytest.raises(EdgeserveError, match="tensor 'x' is missing"):
        await supervisor.ready()
    assert supervisor.status.state is State.FAILED


async def test_busy_before_anything_is_sent(make: Make) -> None:
    supervisor = make("hash?step_us=2000", max_batch_size=1, max_queued_requests=0)
    await supervisor.ready()
    generator = supervisor.generator
    ticket = await generator.submit(make_request(generator, max_tokens=400))
    with pytest.raises(Busy) as refusal:
        await generator.submit(make_request(generator))
    assert 1 <= refusal.value.retry_after_s <= 60
    ticket.cancel()
    assert (await fails(ticket)).code == "request_cancelled"
    assert len(await ask(generator)) == 20


async def test_the_queue_has_a_time_limit(make: Make) -> None:
    supervisor = make("hash?step_us=2000", max_batch_size=1, queue_timeout_s=0.05)
    await supervisor.ready()
    generator = supervisor.generator
    ticket = await generator.submit(make_request(generator, max_tokens=400))
    with pytest.raises(EdgeserveError) as refusal:
        await generator.submit(make_request(generator))
    assert (refusal.value.status, refusal.value.code) == (429, "server_busy")
    assert 1 <= refusal.value.retry_after_s <= 60
    ticket.cancel()


async def test_a_request_has_a_time_limit(make: Make) -> None:
    supervisor = make("hash?step_us=2000", request_timeout_s=0.1)
    await supervisor.ready()
    generator = supervisor.generator
    ticket = await generator.submit(make_request(generator, max_tokens=400))
    assert (await fails(ticket)).status == 504
    assert len(await ask(generator, max_tokens=2)) == 2


async def test_draining_lets_open_requests_end_and_no_new_ones_in(make: Make) -> None:
    supervisor = make("hash?step_us=1000")
    await supervisor.ready()
    generator = supervisor.generator
    ticket = await generator.submit(make_request(generator, max_tokens=100))
    draining = asyncio.ensure_future(supervisor.drain(30))
    await asyncio.sleep(0)
    with pytest.raises(ShuttingDown):
        await generator.submit(make_request(generator))
    tokens, _ = await read(ticket)
    assert len(tokens) == 100
    assert await draining


async def test_draining_gives_up_at_its_time_limit(make: Make) -> None:
    supervisor = make("hash?step_us=2000")
    await supervisor.ready()
    ticket = await supervisor.generator.submit(make_request(supervisor.generator, max_tokens=400))
    await first_piece(ticket)
    assert not await supervisor.drain(0.05)
    await supervisor.close()
    assert (await fails(ticket)).code == "server_unavailable"


async def test_a_dead_worker_shows_in_the_status_until_it_is_replaced(make: Make) -> None:
    changes: asyncio.Queue[Status] = asyncio.Queue()
    supervisor = make(on_change=changes.put_nowait)
    await supervisor.ready()
    pid = supervisor.replicas[0].pid
    assert pid is not None
    while not changes.empty():
        changes.get_nowait()
    os.kill(pid, signal.SIGKILL)
    down = await changes.get()
    assert down.state is State.RESTARTING
    assert "SIGKILL" in down.reason
    while (await changes.get()).state is not State.READY:
        pass
    assert len(await ask(supervisor.generator)) == 20

"""Real worker processes that are killed, stopped and broken: every request still gets an answer."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError, EngineUnavailable, InvalidRequest, ModelLoading
from edgeserve.front.replica import Replica
from edgeserve.front.status import State
from tests.faults.watched import (
    CARE,
    ROOT,
    Start,
    Watched,
    ask,
    fails,
    first_piece,
    is_alive,
    make_request,
)

pytestmark = pytest.mark.anyio

SLOW = "hash?step_us=2000"


async def submit_stream(replica: Replica, tokens: int = 400):
    ticket = await replica.submit(make_request(replica, max_tokens=tokens))
    await first_piece(ticket)
    return ticket


async def test_requests_run_through_a_worker_process(start: Start) -> None:
    watched = await start()
    assert watched.replica.info is not None
    assert watched.replica.info.family == "hash"
    tokens = await ask(watched.replica, seed=4)
    assert len(tokens) == 20
    assert await ask(watched.replica, seed=4) == tokens
    await watched.idle()


async def test_kill_9_in_a_stream_is_told_and_the_worker_replaced(start: Start) -> None:
    watched = await start(SLOW)
    replica = watched.replica
    expected = await ask(replica, seed=4)
    tickets = [await submit_stream(replica) for _ in range(3)]
    pid = replica.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    for ticket in tickets:
        error = await fails(ticket)
        assert (error.status, error.code) == (503, "engine_unavailable")
        assert "SIGKILL" in error.message
    assert replica.status.state is State.RESTARTING
    with pytest.raises(EngineUnavailable) as refusal:
        await replica.submit(make_request(replica))
    assert refusal.value.retry_after_s == 1
    await watched.until(State.READY)
    assert replica.pid != pid
    assert await ask(replica, seed=4) == expected
    await watched.idle()


async def test_a_stopped_worker_is_killed_and_replaced(start: Start) -> None:
    watched = await start(SLOW)
    ticket = await submit_stream(watched.replica)
    assert watched.replica.pid is not None
    os.kill(watched.replica.pid, signal.SIGSTOP)
    assert "did not answer" in (await fails(ticket)).message
    await watched.until(State.READY)
    assert await ask(watched.replica)


async def test_a_front_that_was_held_up_does_not_blame_its_worker(start: Start) -> None:
    watched = await start()
    pid = watched.replica.pid
    time.sleep(2 * CARE.heartbeat.silent_s)  # holds up the loop, as a stopped front would be
    assert len(await ask(watched.replica)) == 20
    assert watched.replica.pid == pid


async def test_a_broken_network_is_told_and_the_worker_replaced(start: Start) -> None:
    watched = await start("hash?fault_after=10")
    ticket = await submit_stream(watched.replica)
    error = await fails(ticket)
    assert (error.status, error.code) == (503, "engine_unavailable")
    await watched.until(State.RESTARTING)
    await watched.until(State.READY)
    assert len(await ask(watched.replica, max_tokens=3)) == 3


async def test_garbage_from_a_worker_costs_the_worker_not_the_front(start: Start) -> None:
    watched = await start("hash", CARE._replace(loader="tests.faults.bad_worker:load_babbling"))
    with pytest.raises(EdgeserveError) as failed:
        await ask(watched.replica)
    assert "protocol" in failed.value.message
    await watched.until(State.READY)


async def test_a_worker_that_dies_again_and_again_is_given_up(start: Start) -> None:
    watched = await start(SLOW, CARE._replace(restarts=2))
    for _ in range(3):
        await watched.until(State.READY)
        ticket = await submit_stream(watched.replica)
        assert watched.replica.pid is not None
        os.kill(watched.replica.pid, signal.SIGKILL)
        await fails(ticket)
    await watched.until(State.FAILED)
    assert watched.replica.restarts == 2
    with pytest.raises(EngineUnavailable) as refusal:
        await watched.replica.submit(make_request(watched.replica))
    assert "SIGKILL" in refusal.value.message


@pytest.mark.parametrize(
    ("checkpoint", "loader", "reason"),
    [
        ("hash?fail=1", CARE.loader, "tensor 'x' is missing"),
        ("hash", "tests.faults.bad_worker:load_never", "was not ready after 1 s"),
        ("hash", "tests.faults.bad_worker:load_and_exit", "exited with code 7"),
        ("hash", "tests.faults.bad_worker:load_with_a_bug", "could not be loaded"),
    ],
)
async def test_a_model_that_does_not_load_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, checkpoint: str, loader: str, reason: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    care = CARE._replace(loader=loader, startup_timeout_s=1.0 if "never" in loader else 30.0)
    watched = Watched(EngineOptions(checkpoint=checkpoint), care)
    with pytest.raises(ModelLoading):
        await watched.replica.submit(make_request(watched.replica))
    await watched.until(State.FAILED)
    assert reason in watched.replica.status.reason
    assert watched.replica.restarts == 0
    assert watched.replica.pid is not None
    assert not is_alive(watched.replica.pid)
    await watched.replica.close()


async def test_cancelling_is_cooperative_and_costs_no_worker(start: Start) -> None:
    watched = await start(SLOW)
    pid = watched.replica.pid
    ticket = await submit_stream(watched.replica)
    async with ticket:
        pass
    await watched.idle()
    assert watched.replica.pid == pid
    assert watched.replica.stats().scheduling.cancelled == 1


async def test_a_caller_that_leaves_before_its_seat_cancels(start: Start) -> None:
    watched = await start(SLOW, max_batch_size=1)
    replica = watched.replica
    first = await submit_stream(replica)
    waiting = asyncio.ensure_future(replica.submit(make_request(replica)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.cancel()
    await watched.idle()
    assert replica.stats().scheduling.cancelled == 2


async def test_large_answers_travel_by_memory_file(start: Start) -> None:
    watched = await start(max_model_len=16384, max_batch_size=1)
    replica = watched.replica
    request = make_request(replica, "x" * 12_000, max_tokens=1, prompt_logprobs=8)
    ticket = await replica.submit(request)
    first = await anext(ticket.events())
    assert len(first.logprobs) == 11_999
    await first_piece(ticket)
    ticket.cancel()


async def test_a_request_that_cannot_be_sent_is_refused_and_forgotten(start: Start) -> None:
    watched = await start()
    with pytest.raises(InvalidRequest):
        await watched.replica.submit(make_request(watched.replica, stop=("\ud800",)))
    assert len(watched.replica) == 0
    assert len(await ask(watched.replica)) == 20


async def test_stop_ends_requests_and_process(start: Start) -> None:
    watched = await start(SLOW)
    ticket = await submit_stream(watched.replica)
    pid = watched.replica.pid
    assert pid is not None
    await watched.replica.close()
    assert (await fails(ticket)).code == "server_unavailable"
    assert not is_alive(pid)


def test_a_worker_dies_with_its_front(tmp_path: Path) -> None:
    """The front is a process of its own here, and is killed the hard way."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    front = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.lonely_front"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert front.stdout is not None
    worker = int(front.stdout.readline())
    descriptor = os.pidfd_open(worker)
    assert is_alive(worker)
    front.kill()
    front.wait()
    assert select.select([descriptor], [], [], 10)[0], "the worker outlived its front"
    os.close(descriptor)

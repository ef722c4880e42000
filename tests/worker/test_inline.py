"""The engine in this process, as `LLM` uses it."""

from __future__ import annotations

import asyncio

import pytest

from edgeserve.errors import EdgeserveError, ShuttingDown
from edgeserve.worker.inline import InlineReplica
from tests.faults.watched import ask, fails, first_piece, make_request
from tests.hash_runtime import hash_runtime

pytestmark = pytest.mark.anyio


async def test_requests_run_and_closing_ends_what_is_open() -> None:
    replica = InlineReplica(hash_runtime(step_us=100), asyncio.get_running_loop())
    answers = await asyncio.gather(*(ask(replica, seed=1) for _ in range(20)))
    assert len(set(answers)) == 1
    ticket = await replica.submit(make_request(replica, max_tokens=400))
    await first_piece(ticket)
    await replica.close()
    await replica.close()
    assert (await fails(ticket)).code == "server_unavailable"
    assert len(replica) == 0
    with pytest.raises(ShuttingDown):
        await replica.submit(make_request(replica))


async def test_a_refusal_is_raised_before_a_ticket_is_given() -> None:
    replica = InlineReplica(hash_runtime(), asyncio.get_running_loop())
    with pytest.raises(EdgeserveError) as refusal:
        await replica.submit(make_request(replica, "x" * 600))
    assert refusal.value.code == "context_length_exceeded"
    await replica.close()


async def test_the_cache_can_be_cleared() -> None:
    replica = InlineReplica(hash_runtime(), asyncio.get_running_loop())
    await ask(replica, "x" * 64)
    replica.clear_cache()
    ticket = await replica.submit(make_request(replica, "x" * 64))
    assert ticket.admitted is not None
    assert ticket.admitted.cached_tokens == 0
    await replica.close()

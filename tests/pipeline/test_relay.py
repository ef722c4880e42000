"""Reading an answer from a thread, and its metrics: told once, whatever becomes of the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from edgeserve import CancellableIterator, GenerationMetrics, StreamDelta
from edgeserve.errors import EdgeserveError, EngineUnavailable, PromptTooLong
from edgeserve.pipeline.call import Call
from edgeserve.pipeline.loop import LoopThread
from edgeserve.pipeline.relay import Relay
from edgeserve.sampling import SamplingParams
from tests.pipeline.conftest import MakeModel
from tests.pipeline.engine_double import EngineDouble

CALL = Call(prompts=((1, 2),))


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("test")
    yield thread
    thread.stop()


@pytest.fixture
def engine(thread: LoopThread) -> EngineDouble:
    async def make() -> EngineDouble:
        return EngineDouble("abc")

    return thread.run(make())


class Told(list[GenerationMetrics]):
    """Collects what `on_metrics` is called with, and counts the ends."""

    stops = 0

    def stop(self) -> None:
        self.stops += 1


def open_stream(
    thread: LoopThread, engine: EngineDouble, make_model: MakeModel, call: Call, told: Told
) -> CancellableIterator[StreamDelta]:
    relay = Relay(make_model(engine), call, thread.loop, told.append, told.stop)
    return CancellableIterator(relay, relay.cancel)


Parts = Any


@pytest.fixture
def parts(thread: LoopThread, engine: EngineDouble, make_model: MakeModel) -> Parts:
    return thread, engine, make_model


def test_deltas_come_in_order_and_the_last_says_why(parts: Parts) -> None:
    told = Told()
    deltas = list(open_stream(*parts, CALL, told))
    assert [delta.text for delta in deltas] == ["a", "b", "c"]
    assert [delta.finished for delta in deltas] == [False, False, True]
    assert [delta.finish_reason for delta in deltas] == [None, None, "stop"]
    assert all(delta.prompt_tokens == 2 for delta in deltas)
    assert (len(told), told.stops) == (1, 1)


def test_metrics_are_the_engines_counts(parts: Parts) -> None:
    told = Told()
    stream = open_stream(*parts, CALL, told)
    list(stream)
    stream.close()
    list(stream)
    assert len(told) == 1
    metrics = told[0]
    assert (metrics.generated_tokens, metrics.decoded_tokens) == (3, 2)
    assert metrics.generation_time == 1.0
    assert metrics.decode_tokens_per_second == 2.0
    assert (metrics.prompt_tokens, metrics.cached_tokens) == (2, 1)
    assert (metrics.queue_s, metrics.time_to_first_token_s, metrics.total_s) == (0.5, 1.0, 2.0)
    assert not metrics.cancelled


def test_an_answer_made_by_prefill_alone_has_no_decode_rate() -> None:
    metrics = GenerationMetrics(generated_tokens=1)
    assert metrics.decode_tokens_per_second == 0.0


def test_metrics_wait_until_the_stream_is_drained(parts: Parts) -> None:
    told = Told()
    stream = open_stream(*parts, CALL, told)
    for _ in range(3):
        next(stream)
    assert told == []
    with pytest.raises(StopIteration):
        next(stream)
    assert len(told) == 1


def test_closing_after_the_finished_delta_is_no_cancellation(parts: Parts) -> None:
    told = Told()
    stream = open_stream(*parts, CALL, told)
    for delta in stream:
        if delta.finished:
            break
    stream.close()
    assert [metrics.cancelled for metrics in told] == [False]
    assert parts[1].cancelled == []


def test_cancel_ends_the_stream_and_tells_the_metrics(parts: Parts) -> None:
    thread, engine, _ = parts
    thread.loop.call_soon_threadsafe(engine.hold.clear)
    told = Told()
    stream = open_stream(*parts, CALL, told)
    stream.cancel()
    deltas = list(stream)
    assert [(delta.text, delta.finish_reason) for delta in deltas] == [("", "cancelled")]
    assert [metrics.cancelled for metrics in told] == [True]
    assert engine.open == 0


@pytest.mark.parametrize("read", [0, 1, 3])
def test_close_waits_for_the_engine_and_tells_the_metrics(parts: Parts, read: int) -> None:
    engine = parts[1]
    told = Told()
    stream = open_stream(*parts, CALL, told)
    for _ in range(read):
        next(stream)
    stream.close()
    assert len(told) == 1
    assert (engine.open, told.stops) == (0, 1)
    assert list(stream) == []


def test_a_request_that_is_wrong_raises_its_error_from_next(parts: Parts) -> None:
    told = Told()
    stream = open_stream(*parts, Call(prompts=((1,) * 91,)), told)
    with pytest.raises(PromptTooLong):
        next(stream)
    assert list(stream) == []
    assert len(told) == 1


def test_a_request_that_breaks_raises_the_real_error_at_the_end(parts: Parts) -> None:
    engine = parts[1]
    engine.broken[(1, 2)] = EngineUnavailable("the engine died")
    told = Told()
    stream = open_stream(*parts, CALL, told)
    assert next(stream).text == "a"
    with pytest.raises(EdgeserveError, match="the engine died"):
        next(stream)
    assert len(told) == 1


def test_several_choices_come_in_one_stream(parts: Parts) -> None:
    call = Call(prompts=((1,),), params=SamplingParams(n=3))
    deltas = list(open_stream(*parts, call, Told()))
    assert [delta.index for delta in deltas] == [0, 1, 2] * 3
    assert sum(delta.finished for delta in deltas) == 3


def test_the_loop_thread_gives_results_and_errors(thread: LoopThread) -> None:
    async def good() -> int:
        return 5

    async def bad() -> int:
        raise ValueError("no")

    assert thread.run(good()) == 5
    with pytest.raises(ValueError, match="no"):
        thread.run(bad())


def test_a_loop_thread_can_be_finished_from_within() -> None:
    thread = LoopThread("test")
    done: list[str] = []

    async def last() -> None:
        await asyncio.sleep(0)
        done.append("last")

    thread.loop.call_soon_threadsafe(lambda: thread.finish(last()))
    thread._thread.join(5)
    assert done == ["last"]
    assert thread.loop.is_closed()
    thread.stop()  # harmless

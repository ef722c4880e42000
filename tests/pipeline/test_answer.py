"""Several prompts and choices as one stream: numbering, fairness, cancelling, refusals."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from edgeserve.errors import EdgeserveError, EngineUnavailable, InternalError
from edgeserve.generation import GenerationRequest, Piece
from edgeserve.pipeline.answer import Answer
from edgeserve.pipeline.call import Call
from edgeserve.sampling import SamplingParams
from edgeserve.ticket import Ticket
from tests.pipeline.conftest import MakeModel
from tests.pipeline.engine_double import EngineDouble

CALL_OF_THREE = Call(prompts=((1,), (2,), (3,)), params=SamplingParams(n=2))


async def read(answer: Answer) -> list[Piece]:
    async with answer:
        return [piece async for piece in answer]


def test_choices_are_numbered_through_all_prompts(make_model: MakeModel) -> None:
    async def run() -> None:
        answer = await make_model(EngineDouble("abc")).start(CALL_OF_THREE)
        texts: dict[int, str] = {}
        for piece in await read(answer):
            texts[piece.choice] = texts.get(piece.choice, "") + piece.text
        assert texts == dict.fromkeys(range(6), "abc")
        assert answer.choices == 6

    asyncio.run(run())


def test_usage_is_summed_over_prompts(make_model: MakeModel) -> None:
    async def run() -> None:
        answer = await make_model(EngineDouble("abc")).start(CALL_OF_THREE)
        await read(answer)
        usage = answer.usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (3, 18, 3)
        assert (usage.queue_s, usage.first_token_s, usage.total_s) == (0.5, 1.0, 2.0)
        assert usage.decoded_tokens == 12
        assert (answer.prompt_tokens, answer.cached_tokens) == (3, 3)

    asyncio.run(run())


def test_prompts_take_turns(make_model: MakeModel) -> None:
    """No prompt is told to its end while another one waits with text."""

    async def run() -> None:
        answer = await make_model(EngineDouble("x" * 50)).start(Call(prompts=((1,), (2,))))
        seen: Counter[int] = Counter()
        for piece in await read(answer):
            seen[piece.choice] += 1
            assert abs(seen[0] - seen[1]) <= 2

    asyncio.run(run())


def test_a_long_list_of_prompts_takes_no_more_than_its_share(make_model: MakeModel) -> None:
    async def run() -> None:
        engine = EngineDouble("ab")
        call = Call(prompts=tuple((i,) for i in range(40)))
        pieces = await read(await make_model(engine).start(call))
        assert len({piece.choice for piece in pieces}) == 40
        assert engine.most == 8  # twice the seats
        assert engine.open == 0

    asyncio.run(run())


def test_a_list_longer_than_the_queue_is_served_all_the_same(make_model: MakeModel) -> None:
    async def run() -> None:
        engine = EngineDouble("ab", places=3)
        call = Call(prompts=tuple((i,) for i in range(20)))
        pieces = await read(await make_model(engine).start(call))
        assert len({piece.choice for piece in pieces}) == 20
        assert engine.most == 3

    asyncio.run(run())


@pytest.mark.parametrize("prompts", [((1,),), ((1,), (2,))])
def test_a_full_engine_refuses_the_call(
    make_model: MakeModel, prompts: tuple[tuple[int, ...], ...]
) -> None:
    async def run() -> None:
        with pytest.raises(EdgeserveError) as caught:
            await make_model(EngineDouble(places=0)).start(Call(prompts=prompts))
        assert caught.value.code == "server_busy"
        assert caught.value.retry_after_s == 1

    asyncio.run(run())


def test_one_failing_prompt_fails_the_answer_and_frees_the_others(make_model: MakeModel) -> None:
    async def run() -> None:
        engine = EngineDouble("x" * 1000)
        engine.broken[(2,)] = EngineUnavailable("the engine died")
        answer = await make_model(engine).start(CALL_OF_THREE)
        with pytest.raises(EdgeserveError) as caught:
            await read(answer)
        assert caught.value.code == "engine_unavailable"
        await asyncio.sleep(0)
        assert engine.open == 0
        assert len(engine.cancelled) == 2

    asyncio.run(run())


@pytest.mark.parametrize("prompts", [((1,),), ((1,), (2,))])
def test_cancelling_wakes_the_reader_and_frees_all_rows(
    make_model: MakeModel, prompts: tuple[tuple[int, ...], ...]
) -> None:
    async def run() -> None:
        engine = EngineDouble()
        engine.hold.clear()
        answer = await make_model(engine).start(Call(prompts=prompts))
        reader = asyncio.create_task(read(answer))
        await asyncio.sleep(0.01)
        answer.cancel()
        with pytest.raises(EdgeserveError) as caught:
            await asyncio.wait_for(reader, 1)
        assert caught.value.code == "request_cancelled"
        assert engine.open == 0
        answer.cancel()  # harmless

    asyncio.run(run())


@pytest.mark.parametrize("prompts", [((1,),), ((1,), (2,))])
def test_leaving_the_block_frees_all_rows(
    make_model: MakeModel, prompts: tuple[tuple[int, ...], ...]
) -> None:
    async def run() -> None:
        engine = EngineDouble("x" * 1000)
        async with await make_model(engine).start(Call(prompts=prompts)) as answer:
            async for _ in answer:
                break
        await asyncio.sleep(0.01)
        assert engine.open == 0

    asyncio.run(run())


def test_an_answer_that_ended_is_not_cancelled(make_model: MakeModel) -> None:
    async def run() -> None:
        for call in (Call(prompts=((1,),)), CALL_OF_THREE):
            engine = EngineDouble()
            answer = await make_model(engine).start(call)
            await read(answer)
            answer.cancel()
            assert engine.cancelled == []

    asyncio.run(run())


def test_a_caller_that_leaves_before_admission_frees_what_it_submitted(
    make_model: MakeModel,
) -> None:
    async def run() -> None:
        engine = EngineDouble()
        engine.hold.clear()
        starting = asyncio.create_task(make_model(engine).start(CALL_OF_THREE))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await asyncio.sleep(0.01)
        if not starting.cancelled():
            starting.result().cancel()
            await asyncio.sleep(0.01)
        assert engine.open == 0

    asyncio.run(run())


def test_a_fault_in_a_task_is_an_error_not_a_hang(make_model: MakeModel) -> None:
    class Broken(EngineDouble):
        async def submit(self, request: GenerationRequest) -> Ticket:
            del request
            raise InternalError("broken")

    async def run() -> None:
        with pytest.raises(InternalError):
            await asyncio.wait_for(make_model(Broken()).start(CALL_OF_THREE), 1)

    asyncio.run(run())

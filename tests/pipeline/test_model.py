"""What a call becomes: limits, clipping, seeds; nothing bad is sent to the engine."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from edgeserve.errors import InvalidRequest, PromptTooLong
from edgeserve.generation import GenerationRequest
from edgeserve.model_info import ModelInfo
from edgeserve.pipeline.answer import Answer
from edgeserve.pipeline.call import Call, Chat
from edgeserve.sampling import SamplerDefaults, SamplingParams
from tests.pipeline.conftest import MakeModel
from tests.pipeline.engine_double import EngineDouble

IDS = tuple(range(10))


def start(
    make_model: MakeModel, call: Call, **options: Any
) -> tuple[Answer, list[GenerationRequest]]:
    async def run() -> tuple[Answer, list[GenerationRequest]]:
        engine = EngineDouble()
        async with await make_model(engine, **options).start(call) as answer:
            async for _ in answer:
                pass
            return answer, engine.requests

    return asyncio.run(run())


def request(make_model: MakeModel, options: dict[str, Any] | None = None, **params: Any) -> Any:
    call = Call(prompts=(IDS,), params=SamplingParams(**params))
    return start(make_model, call, **(options or {}))[1][0]


def test_a_call_without_max_tokens_runs_to_the_end_of_the_context(make_model: MakeModel) -> None:
    assert request(make_model).max_tokens == 90


def test_the_call_and_then_the_operator_choose_the_default_length(make_model: MakeModel) -> None:
    call = Call(prompts=(IDS,), default_max_tokens=16)
    assert start(make_model, call)[1][0].max_tokens == 16
    assert start(make_model, call, default_max_tokens=5)[1][0].max_tokens == 5
    assert request(make_model, {"default_max_tokens": 5}).max_tokens == 5
    assert request(make_model, {"default_max_tokens": 5}, max_tokens=7).max_tokens == 7


@pytest.mark.parametrize(
    ("wish", "effective", "clipped"),
    [(90, 90, False), (91, 90, True), (10**15, 90, True), (1, 1, False)],
)
def test_a_wish_beyond_the_context_is_clipped_and_told(
    make_model: MakeModel, wish: int, effective: int, clipped: bool
) -> None:
    call = Call(prompts=(IDS,), params=SamplingParams(max_tokens=wish))
    answer, requests = start(make_model, call)
    assert (answer.max_tokens, requests[0].max_tokens) == (effective, effective)
    assert answer.clipped is clipped


def test_a_default_beyond_the_context_is_no_clipping(make_model: MakeModel) -> None:
    answer, _ = start(make_model, Call(prompts=(IDS,), default_max_tokens=1000))
    assert (answer.max_tokens, answer.clipped) == (90, False)


def test_a_prompt_over_the_limit_is_refused_with_both_numbers(make_model: MakeModel) -> None:
    async def run() -> None:
        engine = EngineDouble()
        model = make_model(engine)
        await model.start(Call(prompts=((1,) * 90,)))
        with pytest.raises(PromptTooLong, match=r"91 tokens, 1 more .* 90") as caught:
            await model.start(Call(prompts=((1,), (1,) * 91)))
        assert caught.value.param == "prompt"
        with pytest.raises(PromptTooLong) as caught:
            chat = Chat(messages=[{"role": "user", "content": "x" * 200}])
            await model.start(Call(prompts=(chat,)))
        assert caught.value.param == "messages"
        assert len(engine.requests) == 1  # nothing reached the engine

    asyncio.run(run())


def test_a_prompt_must_leave_room_for_one_token(make_model: MakeModel, info: ModelInfo) -> None:
    limits = msgspec.structs.replace(info.limits, max_input_len=100)
    wide = msgspec.structs.replace(info, limits=limits)
    model = make_model(EngineDouble(), info=wide)
    assert model.room(99) == 1
    with pytest.raises(PromptTooLong, match=r"100 tokens, 1 more .* 99"):
        model.room(100)


@pytest.mark.parametrize(
    ("name", "value"),
    [("logit_bias", {"300": 1}), ("stop_token_ids", [300])],
)
def test_ids_outside_the_vocabulary_never_reach_the_engine(
    make_model: MakeModel, name: str, value: object
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(make_model, **{name: value})
    assert caught.value.param == name


def test_what_the_caller_asks_reaches_the_engine(make_model: MakeModel) -> None:
    sent = request(
        make_model,
        n=2,
        stop=["x", "", "x"],
        stop_token_ids=[3],
        include_stop_str_in_output=True,
        ignore_eos=True,
        skip_special_tokens=False,
        logprobs=2,
        prompt_logprobs=1,
        reuse_context=False,
        cache_generated_tokens=False,
        seed=5,
        temperature=0.5,
        min_tokens=2,
    )
    assert sent.choices == 2
    assert sent.stop == ("x",)
    assert sent.stop_token_ids == (3,)
    assert sent.include_stop and sent.ignore_eos
    assert not (sent.skip_special_tokens or sent.reuse_context or sent.cache_generated_tokens)
    assert (sent.logprobs, sent.prompt_logprobs) == (2, 1)
    assert (sent.sampler.seed, sent.sampler.temperature, sent.sampler.min_tokens) == (5, 0.5, 2)
    plain = request(make_model)
    assert plain.skip_special_tokens and plain.reuse_context and plain.cache_generated_tokens
    assert (plain.choices, plain.stop, plain.logprobs) == (1, (), None)


def test_an_echoed_prompt_is_told_with_the_same_logprobs(make_model: MakeModel) -> None:
    call = Call(prompts=(IDS,), params=SamplingParams(logprobs=3), echo=True)
    assert start(make_model, call)[1][0].prompt_logprobs == 3
    call = Call(prompts=(IDS,), echo=True)
    assert start(make_model, call)[1][0].prompt_logprobs is None


def test_the_operators_defaults_apply_where_the_call_is_silent(
    make_model: MakeModel, info: ModelInfo
) -> None:
    learned = msgspec.structs.replace(info, generation_defaults=SamplerDefaults(top_p=0.8, top_k=9))
    options = {"sampler": SamplerDefaults(top_p=0.7), "info": learned}
    sampler = request(make_model, options).sampler
    assert (sampler.top_p, sampler.top_k) == (0.7, 9)


def test_prompts_of_one_call_keep_a_given_seed(make_model: MakeModel) -> None:
    call = Call(prompts=(IDS, IDS, (1,)), params=SamplingParams(seed=9))
    answer, requests = start(make_model, call)
    assert {one.sampler.seed for one in requests} == {9}
    assert answer.seed == 9


def test_equal_prompts_without_a_seed_draw_apart(make_model: MakeModel) -> None:
    answer, _ = start(make_model, Call(prompts=(IDS, IDS, (1,), IDS)))
    first, second, other, third = answer.seeds
    assert len({first, second, third}) == 3
    assert other == first == answer.seed


def test_a_prompt_of_megabytes_is_refused_for_the_work_of_its_first_part(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(EngineDouble())
    encode, seen = model.tokenizer.encode, []

    def count(text: str, *, special: bool = True) -> list[int]:
        seen.append(len(text))
        return encode(text, special=special)

    monkeypatch.setattr(model.tokenizer, "encode", count)
    text = "word " * 1_000_000
    for prompt in (text, Chat(messages=[{"role": "user", "content": text}])):
        with pytest.raises(PromptTooLong, match="has about "):
            asyncio.run(model.start(Call(prompts=(prompt,))))
    assert sum(seen) < 100_000


def test_the_first_prompt_of_a_list_that_is_too_long_ends_the_work(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(EngineDouble())
    encode, seen = model.tokenizer.encode, []

    def count(text: str, *, special: bool = True) -> list[int]:
        seen.append(text)
        return encode(text, special=special)

    monkeypatch.setattr(model.tokenizer, "encode", count)
    with pytest.raises(PromptTooLong):
        asyncio.run(model.start(Call(prompts=("a b " * 200,) * 100)))
    assert len(seen) == 1

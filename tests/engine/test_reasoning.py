"""Reasoning phases through the service: budgets, usage, pieces; the same in any company."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from edgeserve.config import EngineOptions
from edgeserve.generation import Finish, GenerationRequest, ReasoningRules
from edgeserve.guide import Guide
from edgeserve.sampling import SamplerSettings
from edgeserve.text.guide.grammar import make_grammar
from edgeserve.text.guide.wish import Wish
from edgeserve.worker.load import load_runtime
from tests.engine.client import Client
from tests.hash_runtime import hash_runtime

PROMPT = tuple(i * 7 % 251 for i in range(90))
CLOSING = tuple(b"\n</think>\n\n")
THINKING = ReasoningRules(starts_inside=True, end_markers=(tuple(b"</think>"),), budget=12,
                     closing=CLOSING)  # fmt: skip


def phases(client: Client, id_: int, choice: int = 0) -> list[int]:
    return [piece.phase for piece in client.pieces(id_, choice) for _ in piece.tokens]


@pytest.mark.parametrize("logprobs", [None, 0])
def test_a_budget_ends_reasoning_with_real_tokens(start, logprobs) -> None:
    client = start()
    fields = {"seed": 3, "max_tokens": 60, "logprobs": logprobs}
    free = client.tokens(client.run(PROMPT, **fields))
    id_ = client.run(PROMPT, reasoning=THINKING, **fields)
    tokens = client.tokens(id_)
    assert tokens[:12] == free[:12] and tokens[12:23] == CLOSING and len(tokens) == 60
    assert phases(client, id_) == [1] * 23 + [0] * 37
    usage = client.usage(id_)
    assert (usage.completion_tokens, usage.reasoning_tokens) == (60, 23)
    # What follows is what the network says after these tokens, had they been the prompt's.
    next_ = client.run(PROMPT + tokens[:23], max_tokens=1, sampler=SamplerSettings(seed=3))
    assert client.tokens(next_) == tokens[23:24]


def test_forced_tokens_are_generated_tokens_for_the_counters(start) -> None:
    client = start()
    client.run(PROMPT, reasoning=THINKING, max_tokens=60, logprobs=None)
    counts = client.stats().scheduling
    assert counts.generated_tokens == 60 and counts.computed_tokens == 90 + 59
    assert counts.steps == 60 - len(CLOSING)


def test_n_choices_have_budgets_of_their_own(start) -> None:
    client = start()
    id_ = client.run(PROMPT, reasoning=THINKING, seed=5, choices=4, max_tokens=40, logprobs=None)
    answers = [client.tokens(id_, choice) for choice in range(4)]
    assert len(set(answers)) == 4
    assert all(answer[12:23] == CLOSING for answer in answers)
    assert client.usage(id_).reasoning_tokens == 4 * 23


@pytest.mark.parametrize("budget", [0, 5])
def test_the_same_alone_or_preempted_among_others_cold_or_warm(start, budget) -> None:
    how = msgspec.structs.replace(THINKING, budget=budget)
    fields = {"seed": 3, "max_tokens": 120, "reasoning": how}
    alone = start()
    told = alone.result(alone.run(PROMPT, **fields))
    quiet = alone.tokens(alone.run(PROMPT, logprobs=None, **fields))
    assert quiet == told[0]
    small = start(hash_runtime(EngineOptions(checkpoint="hash", max_batch_size=4,
                                             kv_pool_pages=33, prefill_chunk=16)))  # fmt: skip
    ids = [small.submit(PROMPT, **fields) for _ in range(4)]
    small.end(*ids)
    assert [small.result(id_) for id_ in ids] == [told] * 4
    assert small.stats().scheduling.preemptions > 0
    expected = [1] * (budget + 11) + [0] * (109 - budget)
    assert all(phases(small, id_) == expected for id_ in ids)
    again = small.run(PROMPT, **fields)
    assert small.usage(again).cached_tokens > 0 and small.result(again) == told


def test_max_tokens_may_end_a_choice_within_its_closing(start) -> None:
    client = start()
    id_ = client.run(PROMPT, reasoning=THINKING, max_tokens=15, logprobs=None)
    assert client.tokens(id_)[12:] == CLOSING[:3]
    assert client.pieces(id_)[-1].finish is Finish.LENGTH
    assert client.usage(id_).reasoning_tokens == 15


@pytest.mark.parametrize(
    "how",
    [
        ReasoningRules(starts_inside=True, budget=3),
        ReasoningRules(starts_inside=True, budget=3, closing=(99999,)),
        ReasoningRules(starts_inside=True, budget=3, closing=(-1,)),
        ReasoningRules(starts_inside=True, budget=-7),
        ReasoningRules(end_markers=((),)),
        ReasoningRules(end_markers=((2**40,),)),
    ],
)
def test_reasoning_that_makes_no_sense_is_refused_and_harms_nobody(start, how) -> None:
    client = start()
    other = client.submit("fine")
    assert client.error(client.run(PROMPT, reasoning=how)).error.status == 400
    client.end(other)
    assert client.usage(other).completion_tokens == 20


def test_it_crosses_the_wire() -> None:
    call = GenerationRequest(
        id=1, prompt=(1,), sampler=SamplerSettings(), max_tokens=1, reasoning=THINKING
    )
    raw = msgspec.msgpack.encode(call)
    assert msgspec.msgpack.decode(raw, type=GenerationRequest) == call


# A model that thinks ----------------------------------------------------------------------------

THINK, END = 259, 260  # its <think> and </think>


@pytest.fixture(scope="module")
def scripted(scripted_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory):
    options = EngineOptions(
        checkpoint=str(scripted_checkpoint),
        cache_dir=tmp_path_factory.mktemp("cache"),
        threads=1,
        pin=False,
        max_model_len=512,
    )
    client = Client(load_runtime(options))
    yield client
    client.service.close()


def encode(text: str) -> tuple[int, ...]:
    from edgeserve_scripted import encode  # installed by a fixture

    return tuple(encode(text))


def said(client: Client, prompt: str, how: ReasoningRules, **fields: object) -> tuple[str, str]:
    """What it reasoned and what it answered."""
    id_ = client.run(
        encode(prompt), reasoning=how, ignore_eos=False, max_tokens=80, logprobs=None, **fields
    )
    texts = ["", ""]
    for piece in client.pieces(id_):
        texts[piece.phase] += piece.text
    return texts[1], texts[0]


def test_markers_divide_what_a_model_says(scripted) -> None:
    how = ReasoningRules(end_markers=((END,),), start_markers=((THINK,),))
    assert said(scripted, "script:think", how) == (
        "\nTwo and two.\n</think>",
        "<think>\n\nThe answer is 4.",
    )
    inside = msgspec.structs.replace(how, starts_inside=True)
    assert said(scripted, "script:think", inside, stop=("two", "ans"))[1] == "\n\nThe "


def test_a_budget_holds_with_a_hook_and_several_choices(scripted) -> None:
    how = ReasoningRules(starts_inside=True, end_markers=((END,),), budget=7,
                    closing=encode("\n</think>\n\n"))  # fmt: skip
    thought, answer = said(scripted, "tokens=30 say:abcdefghij", how)
    assert (thought, answer) == ("abcdefg\n</think>\n\n", "bcdefghijabcdefghij")
    id_ = scripted.run(encode("tokens=30 say:abcdefghij"), reasoning=how, choices=3)
    assert len({scripted.tokens(id_, choice) for choice in range(3)}) == 1


# With a guide ------------------------------------------------------------------------------------


def regex(source: str) -> Guide:
    return Guide(kind="regex", grammar=make_grammar(Wish(kind="regex", source=source, param="p")))


def test_every_guided_answer_that_stops_has_followed_its_grammar(start) -> None:
    """Though the end is by far the likeliest token all the time."""
    client = start()
    sampler = SamplerSettings(seed=5, logit_bias=((256, 100.0),))
    fields = {"sampler": sampler, "ignore_eos": False, "max_tokens": 60}
    guide = regex("[a-z]{4}")
    id_ = client.run(PROMPT, reasoning=THINKING, guide=guide, choices=3, **fields)
    for choice in range(3):
        answer = "".join(piece.text for piece in client.pieces(id_, choice) if not piece.phase)
        assert re.fullmatch("[a-z]{4}", answer)
        assert client.pieces(id_, choice)[-1].finish is Finish.STOP
    assert client.usage(id_).reasoning_tokens == 3 * 23


def test_a_grammar_may_describe_the_reasoning_too(start) -> None:
    client = start()
    rules = ReasoningRules(starts_inside=True, end_markers=(tuple(b"##"),), constrained=True)
    guide = regex("[0-9]{3}##(yes|no)")
    id_ = client.run(PROMPT, reasoning=rules, guide=guide, seed=1, ignore_eos=False)
    texts = ["", ""]
    for piece in client.pieces(id_):
        texts[piece.phase] += piece.text
    assert re.fullmatch("[0-9]{3}##", texts[1]) and texts[0] in ("yes", "no")

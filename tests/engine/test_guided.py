"""Guided requests through a service: every choice follows its grammar, whoever else runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from edgeserve.errors import Cancelled
from edgeserve.generation import Finish, ReasoningRules
from edgeserve.guide import Guide
from edgeserve.sampling import SamplerSettings
from edgeserve.text.guide.grammar import make_grammar
from edgeserve.text.guide.wish import Wish
from tests.engine.client import Client

Start = Callable[..., Client]


def regex(source: str, **more: object) -> Guide:
    grammar = make_grammar(Wish(kind="regex", source=source, param="p"))
    return Guide(kind="regex", grammar=grammar, **more)  # type: ignore[arg-type]


def guided(source: str, **more: object) -> dict[str, object]:
    return {"guide": regex(source), "ignore_eos": False, "max_tokens": 200, **more}


def text(client: Client, id_: int, choice: int = 0) -> str:
    return "".join(piece.text for piece in client.pieces(id_, choice))


def finish(client: Client, id_: int, choice: int = 0) -> Finish | None:
    return client.pieces(id_, choice)[-1].finish


def test_guided_and_free_requests_share_steps(start: Start) -> None:
    client = start()
    alone = client.result(client.run("abc", max_tokens=30))
    sources = ["(ab)+c{40}", "[x-z]{30}", "h(ello ){5}"]
    ids = [client.submit(f"p{i}", **guided(one, seed=i)) for i, one in enumerate(sources)]
    free = client.submit("abc", max_tokens=30)
    client.end(*ids, free)
    for id_, source in zip(ids, sources, strict=True):
        assert re.fullmatch(source, text(client, id_))
        assert finish(client, id_) is Finish.STOP
    assert client.result(free) == alone


def test_each_choice_follows_the_grammar_its_own_way(start: Start) -> None:
    client = start(max_batch_size=4)  # fewer seats than choices
    id_ = client.run("a prompt", **guided("[a-z]{12}[0-9]", seed=3, choices=6))
    texts = [text(client, id_, choice) for choice in range(6)]
    assert all(re.fullmatch("[a-z]{12}[0-9]", one) for one in texts)
    assert len(set(texts)) == 6


def test_tokens_are_the_same_after_preemption_and_with_a_cached_prefix(start: Start) -> None:
    wide, tight = start(), start(max_batch_size=6, kv_pool_pages=24, max_model_len=256)
    prompts = [f"a rather long prompt with the number {i}" for i in range(6)]
    wishes = [guided("[a-f]{60,70}x", seed=i) for i in range(6)]
    results = []
    for client in (wide, tight, wide):  # the third time from the prefix index
        ids = [client.submit(p, **w) for p, w in zip(prompts, wishes, strict=True)]
        client.end(*ids)
        results.append([client.result(id_) for id_ in ids])
        assert all(re.fullmatch("[a-f]{60,70}x", text(client, id_)) for id_ in ids)
    assert tight.stats().scheduling.preemptions > 0
    assert wide.stats().cache.reused_tokens > 0
    assert results[0] == results[1] == results[2]


def test_the_limit_ends_a_text_that_the_grammar_does_not(start: Start) -> None:
    client = start()
    id_ = client.run("abc", **guided("a{90}", max_tokens=7))
    assert text(client, id_) == "a" * 7
    assert finish(client, id_) is Finish.LENGTH


def test_nothing_holds_before_the_mark_and_no_end_comes_before_it(start: Start) -> None:
    client = start()
    guide = regex("yes|no", start_after=ord("#"))
    settings = {"guide": guide, "ignore_eos": False, "max_tokens": 400}
    bias = ((ord("#"), 2.0), (256, 100.0))  # the end is by far the likeliest token
    sampler = SamplerSettings(seed=5, logit_bias=bias)
    id_ = client.run("abc", sampler=sampler, **settings)
    free, mark, rest = text(client, id_).partition("#")
    assert mark
    assert len(free) > 1
    assert rest in ("yes", "no")
    assert finish(client, id_) is Finish.STOP


def test_a_dead_end_fails_its_request_alone(start: Start) -> None:
    client = start()
    long = client.submit("fine", **guided("[a-z]{100}", seed=1))
    biased = SamplerSettings(temperature=0.0, min_tokens=9)
    short = client.run("dead", **guided("[0-9]{3}", sampler=biased))
    assert client.error(short).error.param == "min_tokens"
    client.end(long)
    assert re.fullmatch("[a-z]{100}", text(client, long))


def test_a_request_can_be_cancelled_while_its_grammar_compiles(start: Start) -> None:
    client = start()
    id_ = client.submit("abc", **guided("[a-z]{900}"))
    client.service.cancel(id_)
    client.end(id_)
    assert client.error(id_).error.code == Cancelled().info().code
    again = client.run("abc", **guided("ok"))
    assert text(client, again) == "ok"


def test_a_slow_grammar_holds_up_nobody(start: Start) -> None:
    client = start()
    client.run("warm", **guided("a"))
    slow = client.submit("abc", **guided(r"(\w{1,300}|\p{L}{1,300}){1,300}x" * 2))
    started = time.monotonic()
    free = client.run("abc", max_tokens=5)
    assert time.monotonic() - started < 0.5
    assert client.usage(free).completion_tokens == 5
    client.service.cancel(slow)
    client.end(slow)


def test_what_must_come_is_appended_without_a_step(start: Start) -> None:
    client = start()
    source = "(alpha|omega): [0-9]{2} - the end of this text is always the same[.]"
    plain = client.run("abc", **guided(source, seed=4))
    steps = client.stats().scheduling.steps
    wishes = {**guided(source, seed=4, logprobs=None), "guide": regex(source, jump_forward=True)}
    jumped = client.run("abc", **wishes)
    assert re.fullmatch(source, text(client, plain))
    assert text(client, jumped) == text(client, plain)
    assert finish(client, jumped) is Finish.STOP
    assert client.stats().scheduling.steps - steps < 12


def test_the_grammar_begins_where_reasoning_ends(start: Start) -> None:
    client = start()
    rules = ReasoningRules(starts_inside=True, end_markers=((ord("#"),),), budget=9, closing=(35,))
    ids = [
        client.submit("abc", reasoning=rules, **guided("yes|no", seed=seed)) for seed in range(6)
    ]
    ids.append(client.submit("abc", reasoning=rules, **guided("a{5}", choices=2)))
    client.end(*ids)
    for id_ in ids:
        answer = "".join(piece.text for piece in client.pieces(id_) if not piece.phase)
        assert answer in ("yes", "no", "aaaaa")
        assert finish(client, id_) is Finish.STOP
    assert sum(bool(piece.phase) for id_ in ids for piece in client.pieces(id_))

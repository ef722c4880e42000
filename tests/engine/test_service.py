"""The engine through its service, on a network that hashes its tokens: nothing is mocked."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from edgeserve.config import EngineOptions
from edgeserve.engine.service import reason_of
from edgeserve.generation import (
    Admitted,
    Finish,
    Finished,
    Pieces,
    PromptLogprobs,
)
from tests.engine.client import Client
from tests.hash_runtime import hash_runtime


def test_events_come_in_order_with_true_usage(start) -> None:
    client = start()
    id_ = client.run("hello there", max_tokens=10)
    first, *middle, last = client.events[id_]
    assert first == Admitted(id_, 0)
    assert all(isinstance(event, Pieces) for event in middle)
    assert isinstance(last, Finished)
    usage = last.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (11, 10, 0)
    assert usage.decoded_tokens == 9
    assert 0 <= usage.queue_s <= usage.first_token_s <= usage.total_s
    assert len(client.tokens(id_)) == 10
    assert client.pieces(id_)[-1].finish is Finish.LENGTH


def test_the_context_ends_a_choice(start) -> None:
    client = start(max_model_len=64)
    id_ = client.run(tuple(range(60)), max_tokens=100)
    assert client.usage(id_).completion_tokens == 4
    assert client.pieces(id_)[-1].finish is Finish.LENGTH


def test_a_stop_token_ends_a_choice(start) -> None:
    client = start()
    tokens = client.tokens(client.run("abc"))
    id_ = client.run("abc", stop_token_ids=(tokens[5],))
    assert client.pieces(id_)[-1].finish is Finish.STOP
    assert client.tokens(id_) == tokens[: tokens.index(tokens[5]) + 1]


@pytest.mark.parametrize(
    ("prompt", "fields", "code"),
    [
        ((), {}, "invalid_value"),
        ((1, 2, 999), {}, "invalid_value"),
        ((1, -2), {}, "invalid_value"),
        (tuple([1] * 512), {}, "context_length_exceeded"),
        ((1,), {"max_tokens": 0}, "invalid_value"),
        ((1,), {"choices": 0}, "invalid_value"),
    ],
)
def test_what_cannot_run_is_refused_and_harms_nobody(start, prompt, fields, code) -> None:
    client = start()
    id_ = client.run(prompt, **fields)
    assert client.error(id_).error.code == code
    assert client.error(id_).error.status == 400
    assert client.usage(client.run("fine")).completion_tokens == 20


def test_cancel_frees_the_row_and_ends_the_request_once(start) -> None:
    client = start(hash_runtime(step_us=200))
    id_ = client.submit("a long story", max_tokens=450)
    client.until(lambda: len(client.tokens(id_)) > 3)
    client.service.cancel(id_)
    client.service.cancel(id_)
    client.end(id_)
    assert client.error(id_).error.code == "request_cancelled"
    assert len(client.tokens(id_)) < 450
    assert client.stats().scheduling.cancelled == 1


def test_cancel_in_the_queue(start) -> None:
    client = start(hash_runtime(EngineOptions(checkpoint="hash", max_batch_size=1), step_us=200))
    first = client.submit("first", max_tokens=450)
    second = client.submit("second")
    client.until(lambda: len(client.tokens(first)) > 3)
    client.service.cancel(second)
    client.end(second)
    assert not client.has_ended(first)
    assert len(client.events[second]) == 1
    client.service.cancel(first)
    client.end(first)


def test_queue_and_request_timeouts(start) -> None:
    client = start(hash_runtime(EngineOptions(checkpoint="hash", max_batch_size=1), step_us=1000))
    running = client.submit("first", max_tokens=500, timeout_s=0.2)
    queued = client.submit("second", queue_timeout_s=0.05)
    client.end(running, queued)
    assert client.error(queued).error.code == "server_busy"
    assert client.error(queued).error.status == 429
    assert client.error(running).error.code == "request_timeout"
    assert client.error(running).error.status == 504
    assert client.tokens(running)
    counts = client.stats().scheduling
    assert (counts.refused, counts.failed, counts.completed) == (1, 2, 0)


def test_a_prefix_is_reused_in_whole_pages_and_never_all_of_a_prompt(start) -> None:
    client = start()
    prompt = tuple(range(64))
    cold = client.run(prompt)
    warm = client.run(prompt)
    longer = client.run(prompt + (7, 7, 7))
    assert [client.usage(i).cached_tokens for i in (cold, warm, longer)] == [0, 48, 64]
    assert client.result(cold) == client.result(warm)
    cache = client.stats().cache
    assert (cache.hit_sequences, cache.no_reusable_prefix_plans) == (2, 1)
    assert cache.reused_tokens == 112


def test_an_answer_is_a_prefix_of_the_next_turn(start) -> None:
    client = start()
    prompt = tuple(range(30))
    first = client.run(prompt, max_tokens=40)
    conversation = prompt + client.tokens(first)
    assert client.usage(client.run(conversation + (1,))).cached_tokens == 64
    plain = tuple(range(100, 130))
    first = client.run(plain, max_tokens=40, cache_generated_tokens=False)
    conversation = plain + client.tokens(first)
    assert client.usage(client.run(conversation + (1,))).cached_tokens == 16


def test_no_reuse_when_asked_for_none_or_under_another_salt(start) -> None:
    client = start()
    prompt = tuple(range(64))
    client.run(prompt, reuse_context=False)
    assert client.usage(client.run(prompt, cache_salt="a")).cached_tokens == 0
    assert client.usage(client.run(prompt, cache_salt="b")).cached_tokens == 0
    assert client.usage(client.run(prompt, cache_salt="b")).cached_tokens == 48
    assert client.usage(client.run(prompt, cache_salt="b", reuse_context=False)).cached_tokens == 0
    assert start(context_reuse=False) is not None


def test_cancelled_requests_publish_their_prompt_alone(start) -> None:
    client = start(hash_runtime(step_us=200))
    prompt = tuple(range(32))
    id_ = client.submit(prompt, max_tokens=400)
    client.until(lambda: len(client.tokens(id_)) > 40)
    client.service.cancel(id_)
    client.end(id_)
    again = prompt + client.tokens(id_)[:33]
    assert client.usage(client.run(again)).cached_tokens == 32


def test_prompt_logprobs_come_once_before_the_first_piece_and_bypass_the_cache(start) -> None:
    client = start(prefill_chunk=16)
    prompt = tuple(range(70))
    client.run(prompt)
    id_ = client.run(prompt, prompt_logprobs=2, choices=2)
    kinds = [type(event) for event in client.events[id_]]
    assert kinds[:2] == [Admitted, PromptLogprobs]
    assert kinds.count(PromptLogprobs) == 1
    logprobs = client.events[id_][1].logprobs
    assert [entry.token for entry in logprobs] == list(prompt[1:])
    assert all(len(entry.top) == 2 for entry in logprobs)
    assert client.usage(id_).cached_tokens == 0
    assert client.stats().cache.lookup_bypass_sequences == 1


def test_choices_share_a_prompt_and_differ_by_seed(start) -> None:
    client = start()
    id_ = client.run("tell me", choices=4, seed=5)
    answers = [client.tokens(id_, choice) for choice in range(4)]
    assert len(set(answers)) == 4
    assert client.usage(id_).completion_tokens == 80
    assert client.usage(id_).decoded_tokens == 76
    assert client.result(client.run("tell me", seed=5)) == client.result(id_, 0)
    # A prompt is computed once: 7 tokens, and the last one for each choice, then 19 steps each.
    again = client.stats().scheduling.computed_tokens
    assert again == 6 + 4 * 20 + 7 + 19


def test_more_choices_than_seats(start) -> None:
    wide, narrow = start(max_batch_size=8), start(max_batch_size=2)
    a = wide.run("tell me", choices=7, seed=5)
    b = narrow.run("tell me", choices=7, seed=5)
    assert [wide.result(a, i) for i in range(7)] == [narrow.result(b, i) for i in range(7)]


PROMPT = tuple(i * 7 % 251 for i in range(150))


@pytest.fixture(scope="module")
def alone() -> tuple:
    """The reference: one request, cold, in an engine of its own."""
    client = Client(hash_runtime(EngineOptions(checkpoint="hash")))
    result = client.result(client.run(PROMPT, seed=3, max_tokens=60))
    client.service.close()
    return result


@pytest.mark.parametrize("chunk", [16, 64, 512])
def test_bitwise_the_same_among_others_in_any_chunks_cold_or_warm(start, alone, chunk) -> None:
    client = start(prefill_chunk=chunk, step_tokens=max(chunk, 32))
    random_ = random.Random(chunk)
    others = [
        client.submit(
            tuple(random_.randrange(256) for _ in range(random_.randrange(1, 200))),
            seed=i,
            max_tokens=random_.randrange(1, 90),
        )
        for i in range(7)
    ]
    cold = client.submit(PROMPT, seed=3, max_tokens=60)
    client.end(cold, *others)
    warm = client.run(PROMPT, seed=3, max_tokens=60)
    assert client.usage(warm).cached_tokens == 144
    assert client.result(cold) == client.result(warm) == alone


def test_bitwise_the_same_after_preemption(start, alone) -> None:
    client = start(kv_pool_pages=32, max_model_len=512)
    ids = [client.submit(PROMPT, seed=3, max_tokens=60, cache_salt=str(i)) for i in range(8)]
    client.end(*ids)
    assert client.stats().scheduling.preemptions > 0
    assert sum(client.usage(i).preemptions for i in ids) > 0
    assert {client.result(i) for i in ids} == {alone}


def test_bitwise_the_same_when_an_urgent_request_takes_the_seat(start, alone) -> None:
    options = EngineOptions(checkpoint="hash", max_batch_size=1)
    client = start(hash_runtime(options, step_us=200))
    id_ = client.submit(PROMPT, seed=3, max_tokens=60)
    client.until(lambda: len(client.tokens(id_)) > 5)
    urgent = client.submit("now", priority=-1)
    client.end(id_, urgent)
    assert client.usage(id_).preemptions == 1
    assert client.result(id_) == alone


def test_two_hundred_requests_a_fifth_cancelled(start) -> None:
    client = start(kv_pool_pages=64)
    random_ = random.Random(1)
    ids, cancelled = [], set()
    for round_ in range(200):
        prompt = tuple(random_.randrange(4) for _ in range(random_.randrange(1, 150)))
        ids.append(
            client.submit(
                prompt,
                seed=round_,
                max_tokens=random_.randrange(1, 100),
                choices=random_.choice([1, 1, 1, 3]),
                priority=random_.choice([0, 0, 1]),
            )
        )
        if random_.random() < 0.2:
            cancelled.add(ids[-1])
            client.service.cancel(ids[-1])
    client.end(*ids)
    for id_ in set(ids) - cancelled:
        assert isinstance(client.events[id_][-1], Finished)
    counts = client.stats().scheduling
    assert counts.submitted == counts.completed + counts.cancelled == 200


def test_submitting_from_many_threads(start) -> None:
    client = start()
    requests = [client.make(f"thread {i}", seed=i) for i in range(64)]
    threads = [
        threading.Thread(target=lambda part: [*map(client.service.submit, part)], args=[part])
        for part in (requests[i::8] for i in range(8))
    ]
    for thread in threads:
        thread.start()
    client.end(*(request.id for request in requests))
    for thread in threads:
        thread.join()
    assert client.stats().scheduling.completed == 64


def test_a_hook_changes_logits_and_its_exception_fails_its_request_alone(start) -> None:
    def hook(tokens: list[int], prompt: int, logits: np.ndarray) -> None:
        if tokens[0] == 1 and len(tokens) > 4:
            raise RuntimeError("a plugin's bug")
        logits[:] = -np.inf
        logits[65 + len(tokens) - prompt] = 0.0

    client = start(hash_runtime(hook=hook))
    good, bad = client.submit((2, 2), max_tokens=5), client.submit((1, 1), max_tokens=5)
    client.end(good, bad)
    assert client.tokens(good) == (65, 66, 67, 68, 69)
    assert client.error(bad).error.status == 500
    assert "family 'hash'" in client.error(bad).error.message
    assert client.usage(client.run((2, 2), max_tokens=2)).completion_tokens == 2


def test_a_hook_that_forbids_everything_is_the_requests_own_failure(start) -> None:
    def hook(_: list[int], _prompt: int, logits: np.ndarray) -> None:
        logits[:] = -np.inf

    client = start(hash_runtime(hook=hook))
    id_ = client.run((2, 2))
    assert client.error(id_).error.status == 400


def test_a_broken_network_fails_open_and_later_requests_with_the_reason(start) -> None:
    client = start(hash_runtime(fault_after=5))
    ids = [client.submit("abc", max_tokens=50) for _ in range(3)]
    client.end(*ids)
    assert {client.error(i).error.code for i in ids} == {"engine_unavailable"}
    assert client.service.failure is not None
    later = client.run("abc")
    assert client.error(later).error.code == "engine_unavailable"
    assert client.error(later).error.message == "the engine failed: the test fault"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("the logits are not finite"), "the logits are not finite"),
        (RuntimeError("cannot read /home/me/model"), "RuntimeError"),
        (KeyError("a prompt"), "KeyError"),
        (MemoryError(), "memory ran out"),
    ],
)
def test_the_reason_of_a_failure_quotes_no_path_and_no_prompt(error, reason) -> None:
    assert reason_of(error) == reason


def test_closing_ends_open_requests(start) -> None:
    client = start(hash_runtime(step_us=500))
    id_ = client.submit("a long story", max_tokens=450)
    client.until(lambda: len(client.tokens(id_)) > 1)
    client.service.close()
    client.end(id_)
    assert client.error(id_).error.code == "server_unavailable"
    late = client.run("too late")
    assert client.error(late).error.code == "server_unavailable"

"""The core on the hash network, against the same network in plain Python."""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve._native.core import Core, Reason
from edgeserve._native.pages import PagePool
from edgeserve._native.prefix import PrefixTree
from edgeserve._native.sampler import Sampler
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Vocabulary
from edgeserve.generation import Finish
from edgeserve.sampling import SamplerSettings
from tests.native.network import GREEDY, PAGE_TOKENS, VOCAB, Bench, greedy, hash_logits

PROMPT = [5, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 7, 100])
def test_greedy_equals_the_plain_network_in_any_chunking(chunk: int) -> None:
    bench = Bench()
    assert bench.complete(bench.sequence(PROMPT, max_tokens=12), chunk) == greedy(PROMPT, 12)


def test_sampled_tokens_equal_the_sampler_on_plain_logits() -> None:
    how = SamplerSettings(
        temperature=0.9, top_p=0.95, seed=77, repetition_penalty=1.2, frequency_penalty=0.1
    )
    tokens = list(PROMPT)
    for _ in range(20):
        logits = hash_logits(tokens)
        tokens.append(
            Sampler(VOCAB).choose(logits, how, tokens, prompt_length=len(PROMPT), choice=3)
        )
    bench = Bench()
    sequence = bench.sequence(PROMPT, sampler=how, choice=3, max_tokens=20)
    assert bench.complete(sequence) == tokens[len(PROMPT) :]


def test_reasons_come_in_their_order() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT, max_tokens=6)
    outcome = bench.core.run([(sequence, 4)], 100)
    assert (outcome.steps, outcome.tokens, outcome.sampled) == (1, 4, 0)
    assert outcome.reason is Reason.STEP
    outcome = bench.core.run([(sequence, 3)], 3)
    assert (outcome.steps, outcome.tokens, outcome.sampled) == (3, 5, 3)
    assert outcome.reason is Reason.HORIZON
    bench.core.interrupt()
    outcome = bench.core.run([(sequence, 1)], 100)
    assert (outcome.steps, outcome.reason) == (1, Reason.INTERRUPTED)
    outcome = bench.core.run([(sequence, 1)], 100)
    assert (outcome.steps, outcome.reason) == (2, Reason.FINISHED)
    assert sequence.finish == Finish.LENGTH and sequence.generated == 6


def test_a_prompt_but_its_last_token_is_a_step_even_when_one_is_pending() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT)
    assert bench.core.run([(sequence, 6)], 100).reason is Reason.STEP
    assert sequence.pending == 1 and sequence.generated == 0


def test_decode_and_prefill_share_a_step() -> None:
    bench = Bench()
    first, second = bench.sequence(PROMPT, 1), bench.sequence([1, 2, 3, 4, 5, 6], 2)
    bench.core.run([(first, 7)], 1)
    outcome = bench.core.run([(first, 1), (second, 4)], 100)
    assert (outcome.steps, outcome.tokens, outcome.sampled) == (1, 5, 1)
    assert outcome.reason is Reason.STEP
    outcome = bench.core.run([(first, 1), (second, 2)], 100)
    assert outcome.reason is Reason.FINISHED and first.finish == Finish.LENGTH
    assert bench.complete(second) == greedy([1, 2, 3, 4, 5, 6], 10)
    assert list(first.tokens()) == PROMPT + greedy(PROMPT, 10)


def test_pages_short_does_nothing() -> None:
    bench = Bench(pages=2)
    sequence = bench.sequence(PROMPT)
    outcome = bench.core.run([(sequence, 7)], 100)
    assert (outcome.steps, outcome.reason) == (2, Reason.PAGES)
    assert sequence.length == 9 and sequence.computed == 8 and bench.pool.available == 0
    outcome = bench.core.run([(sequence, 1)], 100)
    assert (outcome.steps, outcome.tokens, outcome.reason) == (0, 0, Reason.PAGES)
    other = bench.sequence([1], 2)
    assert other.pages_for(1) == 1 and sequence.pages_for(1) == 1
    sequence.release()
    assert bench.pool.available == 2 and sequence.computed == 0 and sequence.pending == 9


def test_a_released_sequence_goes_on_with_the_same_tokens_and_text() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT, max_tokens=12, stop=[b"zzzz"])
    expected = greedy(PROMPT, 12)
    for count in (3, 5):
        bench.core.run([(sequence, sequence.pending)], count)
        sequence.release()
        bench.sequence([1] * 30).release()
    assert bench.complete(sequence, 3) == expected
    assert bench.text() == "".join(chr(97 + token % 26) for token in expected)


def test_forks_share_pages_and_copy_when_they_write() -> None:
    bench = Bench()
    how = SamplerSettings(temperature=1.0, seed=5)
    parent = bench.sequence(PROMPT, 1, sampler=how, max_tokens=8, prompt_logprobs=0)
    bench.core.run([(parent, 6)], 1)
    forks = [parent, parent.fork(2, 1), parent.fork(3, 2)]
    assert 64 - bench.pool.available == 2 and [fork.computed for fork in forks] == [6] * 3
    assert [fork.pages_for(1) for fork in forks] == [1, 1, 1]
    bench.core.run([(fork, 1) for fork in forks], 100)
    assert bench.forward.copies == 2 and 64 - bench.pool.available >= 4
    alone = Bench()
    for choice, fork in enumerate(forks):
        assert fork.finish == Finish.LENGTH
        same = alone.sequence(PROMPT, 9, sampler=how, max_tokens=8, choice=choice)
        assert alone.complete(same) == list(fork.tokens())[7:]
    assert len(bench.pieces(1)) == 8 + 1
    with pytest.raises(ValueError, match="fork"):
        parent.fork(4, 3)
    for fork in forks:
        fork.release()
    bench.pool.check()
    assert bench.pool.available == 64


def test_collected_sequences_give_their_pages_back() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT)
    bench.complete(sequence)
    del sequence
    assert bench.pool.available == 64


# Ends ----------------------------------------------------------------------------------------


def test_end_of_sequence_ends_without_text_and_marks_a_special_token() -> None:
    bench = Bench()
    eos = greedy(PROMPT, 4)[3]
    vocabulary = Vocabulary([b"%d," % id for id in range(VOCAB)], special_ids=[eos])
    sequence = bench.sequence(PROMPT, eos_ids=[eos], vocabulary=vocabulary)
    tokens = bench.complete(sequence)
    assert tokens[-1] == eos and sequence.finish == Finish.STOP
    pieces = bench.pieces()
    assert "".join(piece[1] for piece in pieces) == "".join(f"{token}," for token in tokens[:-1])
    assert pieces[-1] == (1, "", (eos,), (), ((0, eos),), Finish.STOP, None, 0)
    sequence = bench.sequence(PROMPT, 2, stop_token_ids=[eos])
    bench.complete(sequence)
    assert bench.pieces(2)[-1] == (2, "", (eos,), (), (), Finish.STOP, eos, 0)


def test_ignored_end_goes_on_and_min_tokens_forbid_it() -> None:
    bench = Bench()
    expected = greedy(PROMPT, 10)
    sequence = bench.sequence(PROMPT, eos_ids=expected[2:3], ignore_eos=True)
    assert bench.complete(sequence) == expected
    how = SamplerSettings(temperature=0.0, min_tokens=5)
    sequence = bench.sequence(PROMPT, sampler=how, eos_ids=list(range(1, VOCAB)))
    assert bench.complete(sequence)[:5] == [0] * 5 and sequence.generated == 6


def test_stop_strings_end_with_the_text_before_and_what_is_held_comes_at_the_end() -> None:
    bench = Bench()
    expected = greedy(PROMPT, 10)
    text = "".join(chr(97 + token % 26) for token in expected)
    sequence = bench.sequence(PROMPT, stop=[text[3:6].encode(), text[9:].encode() + b"!"])
    bench.complete(sequence)
    pieces = bench.pieces()
    assert "".join(piece[1] for piece in pieces) == text[:3]
    assert pieces[-1][5:7] == (Finish.STOP, text[3:6]) and sequence.generated == 6
    bench.complete(bench.sequence(PROMPT, 2, stop=[text[3:6].encode()], include_stop=True))
    assert bench.text(2) == text[:6]
    bench.complete(bench.sequence(PROMPT, 3, stop=[text[8:].encode() + b"!"]))
    pieces = bench.pieces(3)
    assert pieces[-2][1] == "" and pieces[-1][1] == text[8:] and pieces[-1][5] == Finish.LENGTH
    how = SamplerSettings(temperature=0.0, min_tokens=6)
    sequence = bench.sequence(PROMPT, 4, sampler=how, stop=[text[2:4].encode()])
    bench.complete(sequence)
    assert bench.text(4) == text


def test_context_length_ends() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT, max_length=9, max_tokens=100)
    assert bench.complete(sequence) == greedy(PROMPT, 2) and sequence.finish == Finish.LENGTH


# Logprobs --------------------------------------------------------------------------------------


def log_softmax(tokens: list[int]) -> np.ndarray:
    logits = hash_logits(tokens).astype(np.float64)
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def test_logprobs_come_from_raw_logits() -> None:
    bench = Bench()
    how = SamplerSettings(temperature=0.0, logit_bias=((3, 50.0),), frequency_penalty=30.0)
    sequence = bench.sequence(PROMPT, sampler=how, logprobs=2, max_tokens=5)
    tokens = PROMPT + bench.complete(sequence)
    assert tokens[7] == 3 and tokens[8] == 3 and tokens[9] != 3
    for place, piece in enumerate(bench.pieces()):
        exact = log_softmax(tokens[: 7 + place])
        token, logprob, top = piece[3][0]
        assert token == tokens[7 + place] and abs(logprob - exact[token]) < 1e-9
        assert [id for id, _ in top] == np.argsort(-exact, kind="stable")[:2].tolist()


@pytest.mark.parametrize("chunk", [1, 3, 50, 200])
def test_prompt_logprobs_come_once_before_the_first_piece(chunk: int) -> None:
    bench = Bench()
    prompt = [id * 7 % VOCAB for id in range(150)]
    sequence = bench.sequence(prompt, prompt_logprobs=1, max_tokens=3)
    other = bench.sequence(PROMPT, 2, max_tokens=100)
    bench.core.run([(sequence, min(chunk, 100)), (other, 7)], 1)
    sequence.release()
    bench.complete(sequence, chunk)
    entries = bench.pieces()
    assert len(entries) == 4 and len(entries[0]) == 2
    logprobs = entries[0][1]
    assert [entry[0] for entry in logprobs] == prompt[1:]
    for place, (token, logprob, top) in enumerate(logprobs):
        exact = log_softmax(prompt[: place + 1])
        assert abs(logprob - exact[token]) < 1e-9
        assert top[0][0] == int(np.argmax(exact))
    assert list(sequence.tokens())[150:] == greedy(prompt, 3)


def test_prompt_logprobs_bypass_the_prefix() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    tree.publish(bench.computed(PROMPT), 7)
    assert bench.sequence(PROMPT, prompt_logprobs=0).adopt(tree) == 0
    single = bench.sequence([1], 5, prompt_logprobs=0)
    bench.complete(single)
    assert bench.pieces(5)[0] == (5, ())


# Hooks and masks ------------------------------------------------------------------------------


def test_a_hook_changes_logits_and_others_are_sampled_with_it() -> None:
    bench = Bench()
    free = bench.sequence(PROMPT, 1, max_tokens=6)
    hooked = bench.sequence(PROMPT, 2, max_tokens=6, hook=True, logprobs=0)
    outcome = bench.core.run([(free, 7), (hooked, 7)], 100)
    assert (outcome.steps, outcome.sampled, outcome.reason) == (1, 0, Reason.LOGITS)
    with pytest.raises(ValueError, match="sample"):
        bench.core.run([(free, 1)], 1)
    row = np.asarray(bench.core.logits(hooked))
    assert np.array_equal(row, hash_logits(PROMPT))
    row[:] = -np.inf
    row[13] = 0
    outcome = bench.core.sample()
    assert (outcome.steps, outcome.sampled, outcome.reason) == (0, 2, Reason.STEP)
    assert list(hooked.tokens())[7:] == [13] and list(free.tokens())[7:] == greedy(PROMPT, 1)
    assert abs(bench.pieces(2)[0][3][0][1] - log_softmax(PROMPT)[13]) < 1e-9
    with pytest.raises(ValueError):
        bench.core.sample()
    with pytest.raises(ValueError, match="waits"):
        bench.core.logits(hooked)


def test_a_hook_that_leaves_nothing_fails_its_sequence_alone() -> None:
    bench = Bench()
    for number, value in ((2, -np.inf), (3, np.nan)):
        free = bench.sequence(PROMPT, 1)
        hooked = bench.sequence(PROMPT, number, hook=True)
        bench.core.run([(free, 7), (hooked, 7)], 100)
        np.asarray(bench.core.logits(hooked))[:] = value
        assert bench.core.sample().reason is Reason.FINISHED
        assert hooked.finish == 3 and hooked.generated == 0 and not free.finish
        assert bench.pieces(number)[-1][5] == 3
    assert not bench.core.broken


def test_a_dropped_row_computes_its_last_token_again() -> None:
    bench = Bench()
    free, hooked = bench.sequence(PROMPT, 1), bench.sequence(PROMPT, 2, hook=True)
    bench.core.run([(free, 7), (hooked, 7)], 1)
    bench.core.drop(hooked)
    assert bench.core.sample().sampled == 1 and hooked.pending == 1
    bench.core.run([(free, 1), (hooked, 1)], 1)
    bench.core.drop()
    assert bench.complete(free) == greedy(PROMPT, 10)


def test_masks_hold_for_one_token_and_cost_no_stop_when_early() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT, max_tokens=4)
    sequence.constrained = True
    assert bench.core.run([(sequence, 7)], 100).reason is Reason.LOGITS
    with pytest.raises(ValueError, match="mask"):
        bench.core.sample()
    only = np.zeros(2, np.int32)
    only[1] = 0b100
    sequence.set_mask(only)
    assert bench.core.sample().sampled == 1 and list(sequence.tokens())[7:] == [34]
    sequence.set_mask(only)
    outcome = bench.core.run([(sequence, 1)], 100)
    assert (outcome.steps, outcome.sampled, outcome.reason) == (2, 1, Reason.LOGITS)
    sequence.constrained = False
    bench.core.sample()
    assert list(sequence.tokens())[7:] == [34, 34, *greedy([*PROMPT, 34, 34], 1)]
    with pytest.raises(ValueError, match="word"):
        sequence.set_mask(b"abc")


# Faults ----------------------------------------------------------------------------------------


def test_a_fault_of_the_network_breaks_the_core_for_good() -> None:
    bench = Bench(fault_after=2)
    sequence = bench.sequence(PROMPT)
    with pytest.raises(RuntimeError, match="the test fault"):
        bench.core.run([(sequence, 7)], 100)
    assert bench.core.broken
    for call in (lambda: bench.core.run([(sequence, 1)], 1), bench.core.sample):
        with pytest.raises(RuntimeError, match="the test fault"):
            call()


def test_work_that_makes_no_sense_is_refused_and_changes_nothing() -> None:
    bench = Bench(rows=2, step_tokens=8)
    sequence, other = bench.sequence(PROMPT), bench.sequence(PROMPT, 2)
    foreign = Bench().sequence(PROMPT)
    wrong: list[tuple[list[tuple[Any, int]], int]] = [
        ([], 1),
        ([(sequence, 0)], 1),
        ([(sequence, 8)], 1),
        ([(sequence, 1)], 0),
        ([(sequence, 1), (sequence, 1)], 1),
        ([(sequence, 7), (other, 2)], 1),
        ([(sequence, 1), (other, 1), (foreign, 1)], 1),
        ([(foreign, 1)], 1),
    ]
    for work, horizon in wrong:
        with pytest.raises(ValueError):
            bench.core.run(work, horizon)
    with pytest.raises(IndexError):
        bench.core.run([(bench.sequence([VOCAB]), 1)], 1)
    with pytest.raises(TypeError):
        bench.core.run([(None, 1)], 1)  # type: ignore[list-item]
    assert bench.pool.available == 64 and bench.complete(sequence, 8) == greedy(PROMPT, 10)
    with pytest.raises(ValueError, match="finished"):
        bench.core.run([(sequence, 1)], 1)
    with pytest.raises(ValueError, match="more pages"):
        Core(bench.forward, PagePool(65), bench.ring, max_rows=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt": []},
        {"prompt": [-1]},
        {"max_tokens": 0},
        {"max_length": 2},
        {"sampler": SamplerSettings(top_p=0.0)},
        {"stop": [b""]},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    prompt = wrong.pop("prompt", [1, 2])
    with pytest.raises(ValueError):
        Bench().sequence(prompt, **wrong)


def test_interrupt_comes_from_another_thread_while_the_loop_runs() -> None:
    bench = Bench(pages=64, step_us=1000)
    sequence = bench.sequence([1], max_tokens=200)
    timer = threading.Timer(0.02, bench.core.interrupt)
    timer.start()
    start = time.perf_counter()
    outcome = bench.core.run([(sequence, 1)], 200)
    assert outcome.reason is Reason.INTERRUPTED and outcome.steps < 200
    assert time.perf_counter() - start < 0.2
    timer.join()


# Everything at once -------------------------------------------------------------------------------

EVENT = st.tuples(
    st.sampled_from(["start", "start", "run", "run", "run", "preempt", "evict", "fork"]),
    st.integers(0, 7),
    st.integers(1, 9),
)


@given(st.lists(EVENT, max_size=40), st.integers(12, 40))
@settings(max_examples=150, deadline=None)
def test_tokens_depend_on_nothing_but_the_request(
    events: list[tuple[str, int, int]], pages: int
) -> None:
    bench = Bench(pages=pages, rows=4)
    tree = PrefixTree(bench.pool, PAGE_TOKENS, max_records=5)
    live: list[tuple[Sequence, int]] = []
    for action, which, number in events:
        if action == "start" and len(live) < 4:
            live.append((start(bench, tree, which, number), which))
        elif action == "evict":
            tree.evict(number)
        elif live:
            disturb(bench, tree, live, action, number)
        live = [(sequence, kind) for sequence, kind in live if not check_end(tree, sequence, kind)]
        bench.pool.check()
        tree.check()
    del live
    tree.evict(pages)
    assert bench.pool.available == pages
    assert not {piece[5] for piece in bench.ring.drain()} - {0, Finish.LENGTH}


def settings_of(kind: int) -> SamplerSettings:
    if kind % 2 == 0:
        return GREEDY
    return SamplerSettings(seed=kind, top_k=10, repetition_penalty=1.1)


def start(bench: Bench, tree: PrefixTree, kind: int, number: int) -> Sequence:
    sequence = bench.sequence(
        [1, 2, 3, 4, kind % 3, 5, 6, 7, 8], kind, sampler=settings_of(kind), max_tokens=9
    )
    if number % 3:
        sequence.adopt(tree)
    return sequence


def disturb(
    bench: Bench, tree: PrefixTree, live: list[tuple[Sequence, int]], action: str, number: int
) -> None:
    sequence, kind = live[number % len(live)]
    if action == "preempt":
        tree.publish(sequence, number * 2)
        sequence.release()
        if number % 2:
            sequence.adopt(tree)
    elif action == "fork":
        if sequence.generated == 0 and len(live) < 4:
            live.append((sequence.fork(kind + 10, 0), kind))
    else:
        work = [(item, min(number, item.pending)) for item, _ in live]
        if bench.core.run(work, number).reason is Reason.PAGES and not tree.evict(3):
            sequence.release()


@cache
def alone(prompt: tuple[int, ...], kind: int) -> list[int]:
    bench = Bench()
    return bench.complete(bench.sequence(prompt, sampler=settings_of(kind), max_tokens=9))


def check_end(tree: PrefixTree, sequence: Sequence, kind: int) -> bool:
    if not sequence.finish:
        return False
    tokens = tuple(sequence.tokens())
    assert list(tokens[9:]) == alone(tokens[:9], kind)
    tree.publish(sequence, sequence.computed)
    sequence.release()
    return True

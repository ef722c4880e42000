"""Phases and forced tokens in the core, against the rules in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve._native.core import Reason
from edgeserve._native.sampler import Sampler
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Vocabulary
from edgeserve.generation import Finish, ReasoningRules
from edgeserve.sampling import SamplerSettings
from tests.native.network import GREEDY, PIECES, VOCAB, Bench, greedy, hash_logits

PROMPT = [5, 6, 7, 8, 9, 10, 11]
# Greedy from PROMPT without forcing; tests pick markers out of it.
FREE = greedy(PROMPT, 30)
CLOSING = (33, 34, 35)


@dataclass
class Plain:
    """The rules, without pages, text or steps."""

    how: ReasoningRules
    sampler: SamplerSettings
    max_tokens: int
    eos: tuple[int, ...] = ()
    constrained: bool = False
    tokens: list[int] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    closing_left: int = 0

    def run(self, prompt: list[int], choice: int = 0) -> list[int]:
        inside, since = self.how.starts_inside, 0
        self.close(inside)
        while len(self.tokens) < self.max_tokens:
            token = self.queue.pop(0) if self.queue else self.choose(prompt, choice)
            self.tokens.append(token)
            self.phases.append(int(inside))
            tail = self.tokens[since:]
            if self.closing_left:
                self.closing_left -= 1
                ended = self.closing_left == 0
            elif inside:
                ended = ends_with(tail, self.how.end_markers)
            else:
                ended = not self.constrained and ends_with(tail, self.how.start_markers)
            if token in self.eos:
                break
            if ended:
                inside, since = not inside, len(self.tokens)
            self.close(inside)
        return self.tokens

    def close(self, inside: bool) -> None:
        budget = self.how.budget
        if inside and not self.closing_left and budget is not None and sum(self.phases) >= budget:
            self.queue = list(self.how.closing)
            self.closing_left = len(self.queue)

    def choose(self, prompt: list[int], choice: int) -> int:
        known = prompt + self.tokens
        logits = hash_logits(known)
        return Sampler(VOCAB).choose(
            logits, self.sampler, known, prompt_length=len(prompt), choice=choice
        )


def ends_with(tail: list[int], markers: tuple[tuple[int, ...], ...]) -> bool:
    return any(tuple(tail[-len(marker) :]) == marker for marker in markers)


def gained(bench: Bench, id: int = 1) -> tuple[list[int], list[int], str, str]:
    """Tokens, their phases, reasoning text and content text, as the pieces say."""
    tokens: list[int] = []
    phases: list[int] = []
    texts = ["", ""]
    for piece in bench.pieces(id):
        tokens += piece[2]
        phases += [piece[7]] * len(piece[2])
        texts[piece[7]] += piece[1]
    return tokens, phases, texts[1], texts[0]


def letters(tokens: list[int]) -> str:
    return b"".join(PIECES[token] for token in tokens).decode()


ids = st.integers(0, 9)  # the sampler is biased to these, so markers do occur
markers = st.lists(st.lists(ids, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)


@st.composite
def reasonings(draw: st.DrawFn) -> ReasoningRules:
    return ReasoningRules(
        starts_inside=draw(st.booleans()),
        end_markers=draw(markers),
        start_markers=draw(markers),
        budget=draw(st.none() | st.integers(0, 12)),
        closing=tuple(draw(st.lists(ids, min_size=1, max_size=4))),
    )


FEW = tuple((id, 8.0) for id in range(10))


@settings(max_examples=120, deadline=None)
@given(
    reasonings(),
    st.integers(1, 24),
    st.sampled_from([(), (3,)]),
    st.sampled_from([-1, 0]),
    st.lists(st.integers(1, 6), min_size=1, max_size=12),
)
def test_phases_follow_the_rules_in_any_steps_with_and_without_logprobs(
    how: ReasoningRules, max_tokens: int, eos: tuple[int, ...], logprobs: int, horizons: list[int]
) -> None:
    sampler = SamplerSettings(seed=max_tokens, logit_bias=FEW, frequency_penalty=0.5)
    plain = Plain(how, sampler, max_tokens, eos)
    expected = plain.run(PROMPT)
    bench = Bench()
    sequence = bench.sequence(
        PROMPT,
        sampler=sampler,
        max_tokens=max_tokens,
        eos_ids=eos,
        reasoning=how,
        logprobs=logprobs,
    )
    for horizon in horizons:
        if not sequence.finish:
            bench.core.run([(sequence, sequence.pending)], horizon)
            if horizon % 2 and not sequence.finish:
                sequence.release()  # preempted
    assert bench.complete(sequence, 3) == expected
    assert sequence.reasoning_tokens == sum(plain.phases)
    tokens, phases, thought, answer = gained(bench)
    assert (tokens, phases) == (expected, plain.phases)
    ended = sequence.finish == Finish.STOP
    shown = list(zip(tokens, phases, strict=True))[: len(tokens) - ended]
    assert thought == letters([token for token, phase in shown if phase])
    assert answer == letters([token for token, phase in shown if not phase])


@settings(max_examples=30, deadline=None)
@given(reasonings(), st.integers(1, 16))
def test_forks_follow_the_rules_each_by_itself(how: ReasoningRules, max_tokens: int) -> None:
    sampler = SamplerSettings(seed=9, logit_bias=FEW)
    bench = Bench()
    parent = bench.sequence(PROMPT, 1, sampler=sampler, max_tokens=max_tokens, reasoning=how)
    bench.core.run([(parent, 6)], 1)
    rows = [parent, parent.fork(2, 1), parent.fork(3, 2)]
    while going := [row for row in rows if not row.finish]:
        bench.core.run([(row, row.pending) for row in going], 100)
    for choice, row in enumerate(rows):
        expected = Plain(how, sampler, max_tokens).run(PROMPT, choice)
        assert list(row.tokens())[len(PROMPT) :] == expected


# Phases ---------------------------------------------------------------------------------------


def test_a_budget_closes_reasoning_in_one_chunk_and_the_loop_goes_on() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True, budget=3, closing=CLOSING)
    sequence = bench.sequence(PROMPT, max_tokens=12, reasoning=how)
    outcome = bench.core.run([(sequence, 7)], 100)
    assert outcome.reason is Reason.FINISHED and outcome.sampled == 12
    assert outcome.steps == 3 + 6  # the closing costs no step of its own
    head = [*FREE[:3], *CLOSING]
    assert list(sequence.tokens())[7:] == [*head, *greedy([*PROMPT, *head], 6)]
    assert (sequence.phase, sequence.phase_start, sequence.reasoning_tokens) == (0, 13, 6)


def test_a_chunk_too_long_for_a_step_is_left_to_the_caller() -> None:
    bench = Bench(step_tokens=8)
    how = ReasoningRules(starts_inside=True, budget=1, closing=(1,) * 12)
    sequence = bench.sequence(PROMPT, max_tokens=20, reasoning=how)
    outcome = bench.core.run([(sequence, 7)], 100)
    assert (outcome.steps, outcome.reason) == (1, Reason.STEP) and sequence.pending == 13
    assert len(bench.complete(sequence, 8)) == 20


def test_stop_strings_act_in_content_and_never_across_phases() -> None:
    text = letters(FREE)
    bench = Bench()
    how = ReasoningRules(starts_inside=True, end_markers=((FREE[5],),))
    inside, across = text[2:4].encode(), text[5:7].encode()
    sequence = bench.sequence(PROMPT, max_tokens=30, reasoning=how, stop=[inside, across])
    bench.complete(sequence)
    end = FREE.index(FREE[5]) + 1
    _, _, thought, answer = gained(bench)
    assert thought == text[:end]
    later = [text.find(stop.decode(), end) for stop in (inside, across)]
    stops = [place for place in later if place >= 0]
    assert answer == (text[end : min(stops)] if stops else text[end:])


def test_a_held_stop_prefix_comes_out_in_its_own_phase() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True, budget=2, closing=CLOSING)
    stop = letters([*CLOSING, 0]) + "!"
    bench.complete(bench.sequence(PROMPT, max_tokens=8, reasoning=how, stop=[stop.encode()]))
    _, _, thought, answer = gained(bench)
    assert thought == letters([*FREE[:2], *CLOSING]) and len(answer) == 3


def test_an_incomplete_character_does_not_cross_phases() -> None:
    pieces = [b"\xc3" if id == CLOSING[2] else b"\xa9" for id in range(VOCAB)]
    bench = Bench()
    how = ReasoningRules(starts_inside=True, budget=0, closing=CLOSING)
    bench.complete(
        bench.sequence(PROMPT, max_tokens=4, reasoning=how, vocabulary=Vocabulary(pieces))
    )
    assert gained(bench)[2:] == ("\ufffd" * 3, "\ufffd")


def test_marks_of_special_markers_lie_in_reasoning() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True, end_markers=((FREE[2],),))
    special = Vocabulary(PIECES, special_ids=[FREE[2]])
    bench.complete(bench.sequence(PROMPT, max_tokens=5, reasoning=how, vocabulary=special))
    marked = [piece for piece in bench.pieces() if piece[4]]
    assert [(piece[4], piece[7]) for piece in marked[:1]] == [(((0, FREE[2]),), 1)]


def test_min_tokens_count_reasoning_and_stop_tokens_end_it() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True)
    sequence = bench.sequence(PROMPT, reasoning=how, stop_token_ids=[FREE[3]])
    bench.complete(sequence)
    assert sequence.finish == Finish.STOP and sequence.reasoning_tokens == FREE.index(FREE[3]) + 1


def test_masks_are_asked_for_after_reasoning_only() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True, start_markers=((3,),), budget=4, closing=CLOSING)
    sequence = bench.sequence(PROMPT, max_tokens=10, reasoning=how)
    sequence.constrained = True
    assert not sequence.needs_mask and sequence.constraint_start == sequence.length
    outcome = bench.core.run([(sequence, 7)], 100)
    assert outcome.reason is Reason.LOGITS and sequence.generated == 7 and sequence.needs_mask
    assert sequence.constraint_start == sequence.phase_start == 14
    only = np.array([1 << 3, 0], np.int32)
    for _ in range(3):
        sequence.set_mask(only)
        bench.core.sample()
        assert sequence.needs_mask  # a start marker means nothing to a constraint
        if not sequence.finish:
            bench.core.run([(sequence, 1)], 100)
    assert sequence.finish == Finish.LENGTH and sequence.reasoning_tokens == 7


def test_an_answer_that_must_follow_a_constraint_does_not_end_in_reasoning() -> None:
    how = ReasoningRules(starts_inside=True, budget=5, closing=CLOSING)
    for constrained in (False, True):
        bench = Bench()
        sequence = bench.sequence(PROMPT, reasoning=how, eos_ids=[FREE[1]])
        sequence.constrained = constrained
        bench.core.run([(sequence, 7)], 100)
        assert (sequence.finish == Finish.STOP) != constrained
    assert sequence.phase == 0 and FREE[1] not in list(sequence.tokens())[7:12]
    sequence.set_mask(np.full(2, -1, np.int32))
    bench.core.sample()
    assert sequence.generated == 9


def test_a_constraint_may_hold_in_reasoning() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True, constrained=True)
    sequence = bench.sequence(PROMPT, reasoning=how)
    sequence.constrained = True
    assert bench.core.run([(sequence, 7)], 100).reason is Reason.LOGITS
    assert sequence.needs_mask and sequence.constraint_start == 7


# Forced tokens ----------------------------------------------------------------------------------


def started(bench: Bench, **settings: Any) -> Sequence:
    sequence = bench.sequence(PROMPT, **settings)
    bench.core.run([(sequence, 7)], 1)
    return sequence


def test_forced_tokens_are_a_chunk_between_runs() -> None:
    bench = Bench()
    sequence = started(bench)
    assert bench.core.force(sequence, [1, 2, 3]) == 3 and sequence.pending == 4
    outcome = bench.core.run([(sequence, 4)], 1)
    assert (outcome.tokens, outcome.sampled) == (4, 1)
    head = [FREE[0], 1, 2, 3]
    assert bench.complete(sequence) == [*head, *greedy([*PROMPT, *head], 6)]


def test_forced_tokens_tell_their_logprobs_when_asked() -> None:
    bench = Bench()
    sequence = started(bench, logprobs=1)
    assert bench.core.force(sequence, np.array([1, 2], np.int32)) == 0 and sequence.forced == 2
    tokens = PROMPT + bench.complete(sequence)
    assert tokens[8:10] == [1, 2]
    for place, piece in enumerate(bench.pieces()):
        logits = hash_logits(tokens[: 7 + place]).astype(np.float64)
        exact = logits - np.log(np.exp(logits).sum())
        ((token, logprob, top),) = piece[3]
        assert token == tokens[7 + place] and abs(logprob - exact[token]) < 1e-9
        assert top[0][0] == int(np.argmax(exact))


def test_forced_tokens_before_the_first_and_in_a_step_that_waits() -> None:
    bench = Bench()
    sequence = bench.sequence(PROMPT, max_tokens=6)
    sequence.constrained = True
    assert bench.core.force(sequence, [4, 5]) == 0
    outcome = bench.core.run([(sequence, 7)], 1)
    assert (outcome.sampled, outcome.reason) == (2, Reason.HORIZON)
    assert bench.core.run([(sequence, 2)], 9).reason is Reason.LOGITS
    assert bench.core.force(sequence, [6, 7]) == 0
    assert bench.core.sample().sampled == 2
    assert list(sequence.tokens())[7:] == [4, 5, 6, 7]


def test_forced_tokens_end_a_sequence_and_what_is_left_is_dropped() -> None:
    bench = Bench()
    sequence = started(bench, eos_ids=[2])
    assert bench.core.force(sequence, [1, 2, 3]) == 2 and sequence.finish == Finish.STOP
    other = started(bench, id=2, max_tokens=3)
    assert bench.core.force(other, [1, 2, 3]) == 2 and other.finish == Finish.LENGTH
    with pytest.raises(ValueError, match="finished"):
        bench.core.force(other, [1])
    third = started(bench, id=3)
    for bad in ([1, VOCAB], [-1]):
        with pytest.raises(IndexError):
            bench.core.force(third, bad)
    assert third.generated == 1 and third.forced == 0


@pytest.mark.parametrize(
    "fields",
    [{"budget": -2}, {"budget": 3}, {"end_markers": ((),)}, {"closing": (-1,), "budget": 1}],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"reasoning|marker"):
        Bench().sequence(PROMPT, sampler=GREEDY, reasoning=ReasoningRules(**fields))


def test_closing_ids_beyond_the_vocabulary_are_refused_before_a_step() -> None:
    bench = Bench()
    how = ReasoningRules(starts_inside=True, budget=2, closing=(VOCAB,))
    with pytest.raises(IndexError):
        bench.core.run([(bench.sequence(PROMPT, reasoning=how), 7)], 1)
    assert not bench.core.broken

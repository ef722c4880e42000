"""A Python callable behind the core, and the hash network against its plain form."""

from __future__ import annotations

import numpy as np
import pytest

from edgeserve._native.core import Core
from edgeserve._native.oracle import CallbackForward, HashForward
from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Ring, Vocabulary
from tests.native.network import GREEDY, VOCAB, Bench, greedy, hash_logits

SHAPE = {"vocab": VOCAB, "page_tokens": 4, "pages": 32, "step_tokens": 64}


class PlainNetwork:
    """Keeps token ids in pages, as HashForward keeps hashes."""

    def __init__(self, *, spoil: bool = False) -> None:
        self.spoil = spoil
        self.pages = np.zeros((32, 4), np.int32)
        self.fault: BaseException | None = None

    def run(self, ids, spans, outputs, logits) -> None:  # type: ignore[no-untyped-def]
        if self.fault is not None:
            raise self.fault
        base, rows = 0, []
        for start, count, pages in spans:
            for place in range(start, start + count):
                self.pages[pages[place // 4], place % 4] = ids[base + place - start]
            table = self.pages[np.asarray(pages)].reshape(-1)
            rows += [table[: start + place + 1].tolist() for place in range(count)]
            base += count
        assert base == len(ids)
        for row, output in enumerate(outputs):
            np.asarray(logits)[row] = np.nan if self.spoil else hash_logits(rows[output])

    def copy_page(self, source: int, target: int) -> None:
        self.pages[target] = self.pages[source]


def make(network: PlainNetwork) -> tuple[Core, Sequence]:
    pool = PagePool(32)
    forward = CallbackForward(network.run, network.copy_page, **SHAPE)
    core = Core(forward, pool, Ring(), max_rows=4)
    vocabulary = Vocabulary([b"x"] * VOCAB)
    sequence = Sequence(
        1, range(1, 8), vocabulary, pool, 4, sampler=GREEDY, max_tokens=5, max_length=64
    )
    return core, sequence


def test_a_callable_runs_behind_the_core() -> None:
    core, sequence = make(PlainNetwork())
    core.run([(sequence, 3)], 1)
    core.run([(sequence, 3)], 1)
    fork = sequence.fork(2, 1)
    core.run([(sequence, 1), (fork, 1)], 100)
    assert list(sequence.tokens()) == list(fork.tokens())
    assert list(sequence.tokens())[7:] == greedy(range(1, 8), 5)


@pytest.mark.parametrize("fault", [KeyError("lost"), KeyboardInterrupt(), MemoryError("big")])
def test_its_exceptions_come_out_of_run_and_break_the_core(fault: BaseException) -> None:
    network = PlainNetwork()
    core, sequence = make(network)
    network.fault = fault
    for _ in range(2):
        with pytest.raises(type(fault)) as raised:
            core.run([(sequence, 7)], 100)
        assert raised.value is fault
    assert core.broken


def test_logits_that_are_not_finite_break_the_core() -> None:
    core, sequence = make(PlainNetwork(spoil=True))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not finite"):
            core.run([(sequence, 7)], 100)


def test_a_network_that_cannot_copy_says_so() -> None:
    network = PlainNetwork()
    network.copy_page = None  # type: ignore[assignment, method-assign]
    core, sequence = make(network)
    core.run([(sequence, 6)], 1)
    fork = sequence.fork(2, 1)
    with pytest.raises(NotImplementedError):
        core.run([(sequence, 1), (fork, 1)], 1)


def test_the_hash_network_notices_a_page_that_another_wrote() -> None:
    bench = Bench(pages=4)
    sequence = bench.sequence(range(1, 8))
    bench.core.run([(sequence, 6)], 1)
    (page, _) = sequence.page_ids()
    bench.pool.give(page)  # a bug, on purpose: two sequences on one page
    bench.complete(bench.sequence([30] * 4, 2, max_tokens=1))
    bench.core.run([(sequence, 1)], 1)
    assert list(sequence.tokens())[7:] != greedy(range(1, 8), 1)
    bench.pool.take(1)


def test_shapes_that_make_no_sense_are_refused() -> None:
    forward = HashForward(**SHAPE)
    assert (forward.vocab, forward.page_tokens, forward.pages) == (VOCAB, 4, 32)
    assert (forward.step_tokens, forward.steps, forward.max_tokens, forward.copies) == (64, 0, 0, 0)
    with pytest.raises(ValueError):
        HashForward(**{**SHAPE, "vocab": 0})

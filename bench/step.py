"""One engine step without a network: scheduling of rows, sampling, text, ring (pytest-benchmark).

    pytest bench/step.py --benchmark-only --import-mode=importlib

Each round decodes `STEPS` tokens in one call of `Core.run`; divide by it for the cost of a step.
The same steps in calls of one step each show what a return to Python costs beside that.
"""

from __future__ import annotations

from typing import Any

import pytest

from edgeserve._native.core import Core
from edgeserve._native.oracle import HashForward
from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Ring, Vocabulary
from edgeserve.sampling import SamplerSettings

STEPS, VOCAB, PAGE, PAGES = 256, 32000, 16, 4096
GREEDY = SamplerSettings(temperature=0.0)
DRAWN = SamplerSettings(temperature=0.8, top_p=0.9, top_k=50, seed=1)


class Bench:
    """A core with `rows` sequences that have their prompt computed."""

    def __init__(self, rows: int, sampler: SamplerSettings) -> None:
        forward = HashForward(vocab=VOCAB, page_tokens=PAGE, pages=PAGES, step_tokens=1024)
        pool, self.ring = PagePool(PAGES), Ring()
        vocabulary = Vocabulary([f" w{i}".encode() for i in range(VOCAB)], [])
        self.core = Core(forward, pool, self.ring, max_rows=rows)
        limits = {"max_tokens": 4 * STEPS, "max_length": 8 * STEPS}
        self.rows = [
            Sequence(i, [1, 2, 3], vocabulary, pool, PAGE, sampler=sampler, **limits)
            for i in range(rows)
        ]
        self.core.run([(row, 3) for row in self.rows], 1)

    def decode(self, horizon: int) -> None:
        for _ in range(STEPS // horizon):
            self.core.run([(row, 1) for row in self.rows], horizon)
        self.ring.drain()


@pytest.mark.parametrize("horizon", [STEPS, 1], ids=["one call", "a call per step"])
@pytest.mark.parametrize("sampler", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("rows", [1, 8])
def test_step(benchmark: Any, rows: int, sampler: SamplerSettings, horizon: int) -> None:
    def fresh() -> tuple[tuple[Bench], dict[str, object]]:
        return (Bench(rows, sampler),), {}

    def decode(bench: Bench) -> None:
        bench.decode(horizon)
        assert all(row.generated == STEPS + 1 for row in bench.rows)

    benchmark.extra_info["steps"] = STEPS
    benchmark.pedantic(decode, setup=fresh, rounds=5)

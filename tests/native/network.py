"""The hash network in plain Python, and small things made quickly, for the core's tests."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

import numpy as np

from edgeserve._native.core import Core
from edgeserve._native.oracle import HashForward
from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence
from edgeserve._native.stream import Ring, Vocabulary
from edgeserve.sampling import SamplerSettings

VOCAB = 40
PAGE_TOKENS = 4
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
GREEDY = SamplerSettings(temperature=0.0)
PIECES = [bytes([97 + id % 26]) for id in range(VOCAB)]


def _mix(value: int) -> int:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def hash_logits(tokens: Items[int], vocab: int = VOCAB) -> np.ndarray:
    """What HashForward says after these tokens."""
    state = 0
    for position, token in enumerate(tokens):
        slot = _mix(token * GOLDEN + position + 1 & MASK)
        state = (state ^ slot) * GOLDEN & MASK
    row = [(_mix(state + (id + 1) * GOLDEN & MASK) >> 40) * 2.0**-21 for id in range(vocab)]
    return np.array(row, np.float32)


def greedy(prompt: Items[int], count: int) -> list[int]:
    """The tokens that follow, highest logit first."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(np.argmax(hash_logits(tokens))))
    return tokens[len(prompt) :]


class Bench:
    """A core on the hash network, with everything it needs."""

    def __init__(self, pages: int = 64, rows: int = 8, step_tokens: int = 256, **network: int):
        self.forward = HashForward(
            vocab=VOCAB, page_tokens=PAGE_TOKENS, pages=pages, step_tokens=step_tokens, **network
        )
        self.pool = PagePool(pages)
        self.ring = Ring()
        self.core = Core(self.forward, self.pool, self.ring, max_rows=rows)
        self.vocabulary = Vocabulary(PIECES)

    def sequence(self, prompt: Items[int], id: int = 1, **settings: Any) -> Sequence:
        settings = {"sampler": GREEDY, "max_tokens": 10, "max_length": 512} | settings
        vocabulary = settings.pop("vocabulary", self.vocabulary)
        return Sequence(id, prompt, vocabulary, self.pool, PAGE_TOKENS, **settings)

    def complete(self, sequence: Sequence, chunk: int = 256) -> list[int]:
        """Run it alone to its end; the generated tokens."""
        while not sequence.finish:
            self.core.run([(sequence, min(chunk, sequence.pending))], 1000)
        return list(sequence.tokens())[sequence.prompt_length :]

    def computed(self, tokens: Items[int], **settings: Any) -> Sequence:
        """A sequence whose pages hold all of `tokens`."""
        sequence = self.sequence(tokens, max_tokens=100, **settings)
        self.core.run([(sequence, len(tokens))], 1)
        return sequence

    def pieces(self, id: int = 1) -> list[tuple[Any, ...]]:
        return [entry for entry in self.ring.drain() if entry[0] == id]

    def text(self, id: int = 1) -> str:
        return "".join(piece[1] for piece in self.pieces(id))

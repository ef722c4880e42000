"""`best_of`: more choices are drawn than are kept; the likeliest ones answer.

A choice is as likely as the mean of its tokens' logprobs under the model as it is, before any
sampler step, the end-of-sequence token included. Ties go to the choice that was numbered first.
"""

from __future__ import annotations

import math

from edgeserve.generation import Piece
from edgeserve.pipeline.answer import Answer


class Best:
    """Reads along with the pieces of one answer. Without `best_of` it keeps all in their order."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._sums = [0.0] * answer.choices
        self._counts = [0] * answer.choices

    def note(self, piece: Piece) -> None:
        self._sums[piece.choice] += sum(one.logprob for one in piece.logprobs)
        self._counts[piece.choice] += len(piece.logprobs)

    def kept(self) -> list[int]:
        """The numbers of the choices that answer: prompt by prompt, the likeliest first."""
        answer = self._answer
        numbers = list(range(answer.choices))
        if answer.kept == answer.drawn:
            return numbers
        return [
            number
            for start in range(0, answer.choices, answer.drawn)
            for number in sorted(
                numbers[start : start + answer.drawn], key=self._mean, reverse=True
            )[: answer.kept]
        ]

    def _mean(self, number: int) -> float:
        if not self._counts[number]:
            return -math.inf
        return self._sums[number] / self._counts[number]

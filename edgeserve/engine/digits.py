"""Numbers in constrained JSON come to an end: at most `DIGITS` digits, `EXPONENT` in an exponent.

JSON itself sets no bound, and a model that likes digits never stops. Fractions end where a double
does, so that rounding cannot carry a value over a bound of its schema. The state is one small
tuple per token, made from the token's bytes; forks and rollbacks keep or drop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeserve.engine.guide_tokenizer import GuideTokenizer

DIGITS = 18
PRECISE = 15  # digits of a number with a fraction
EXPONENT = 2

Mask = NDArray[np.uint32]


class At(IntEnum):
    """Where the text stands."""

    ELSEWHERE = 0
    STRING = 1
    ESCAPE = 2
    INTEGER = 3
    FRACTION = 4
    POWER = 5


class Place(NamedTuple):
    at: At = At.ELSEWHERE
    digits: int = 0  # of the number so far; in a power, of the power


START = Place()


def move(place: Place, piece: bytes) -> Place:
    """Where the text stands after `piece`."""
    at, digits = place
    for byte in piece:
        if at == At.STRING:
            at = At.ELSEWHERE if byte == 0x22 else At.ESCAPE if byte == 0x5C else At.STRING
        elif at == At.ESCAPE or byte == 0x22:
            at = At.STRING
        else:
            at, digits = _number(at, digits, byte)
    return Place(at, digits)


def _number(at: At, digits: int, byte: int) -> tuple[At, int]:
    if 0x30 <= byte <= 0x39:
        return (At.INTEGER, 1) if at == At.ELSEWHERE else (at, digits + 1)
    if at == At.INTEGER and byte == 0x2E:
        return At.FRACTION, digits
    if at in (At.INTEGER, At.FRACTION) and byte in (0x65, 0x45):
        return At.POWER, 0
    if at == At.POWER and byte in (0x2B, 0x2D):
        return at, digits
    return At.ELSEWHERE, 0


class DigitBound:
    """The masks that end numbers. Read by any thread."""

    def __init__(self, tokenizer: GuideTokenizer) -> None:
        runs = [_leading_digits(piece) for piece in tokenizer.pieces]
        self._longest = min(max(runs, default=0), DIGITS)
        self._allow = [  # by digits left: the tokens that begin with no more than these
            ~tokenizer.mask_of(i for i, run in enumerate(runs) if run > left)
            for left in range(self._longest)
        ]
        point = (i for i, piece in enumerate(tokenizer.pieces) if piece[:1] in (b".", b"e", b"E"))
        self._no_point = ~tokenizer.mask_of(point)

    def apply(self, place: Place, mask: Mask) -> None:
        """Take from `mask` [words] what would make the number longer, unless nothing were left."""
        if place.at < At.INTEGER:
            return
        bound = {At.INTEGER: DIGITS, At.FRACTION: PRECISE, At.POWER: EXPONENT}[place.at]
        left = max(0, bound - place.digits)
        if left < self._longest:
            _narrow(mask, self._allow[left])
        if place.at == At.INTEGER and place.digits >= PRECISE:
            _narrow(mask, self._no_point)


def _narrow(mask: Mask, allow: Mask) -> None:
    narrowed = mask & allow
    if narrowed.any():
        mask[:] = narrowed


def _leading_digits(piece: bytes) -> int:
    return len(piece) - len(piece.lstrip(b"0123456789"))


def places(pieces: Sequence[bytes]) -> Place:
    """Where a whole text stands."""
    place = START
    for piece in pieces:
        place = move(place, piece)
    return place

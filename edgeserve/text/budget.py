"""What one rendering of a chat template may use, and what single operations would take of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

SECONDS = 1.0  # CPU time of one rendering
_CREATED = 64 << 20  # characters made in total, beside a multiple of the input's
_SINGLE = 4 << 20  # weight of one object, beside a multiple of the input's
_PIECES = 1 << 21  # parts of one split
_INT_BITS = 4096
_TICKS = 64  # ticks between looks at the clock


_FORMAT_WIDTH = re.compile(r"\*|\d{5}|\{[^{}]*\{")  # also a width that is itself a field


class TooMuch(Exception):
    """A rendering went over its budget."""


class Budget:
    """What one rendering may still use. Belongs to one thread."""

    def __init__(self, inputs: Any) -> None:
        self._stop = time.thread_time() + SECONDS
        self._ticks = 0
        self._weights: dict[int, tuple[Any, int]] = {}
        self.single = 1 << 62
        size = self.weight(inputs)
        self.single = _SINGLE + 2 * size
        self._left = _CREATED + 32 * size

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks % _TICKS == 0:
            self.check_time()

    def check_time(self) -> None:
        if time.thread_time() > self._stop:
            raise TooMuch(f"it takes longer than {SECONDS:g} s")

    def charge(self, value: Any) -> Any:
        """Pay for a new object; returns it."""
        size = self.weight(value)
        self._left -= size
        if self._left < 0:
            raise TooMuch("it makes too much text")
        if size > 100_000:
            self.check_time()
        return value

    def allow(self, size: int) -> None:
        """Refuse an operation that would make an object of this weight."""
        if size > self.single:
            raise TooMuch(f"it makes a text of more than {self.single} characters")

    def weight(self, value: Any) -> int:
        """Characters it takes to write the value out, at least one each. Containers are
        remembered: nothing in the sandbox can change them."""
        if isinstance(value, (str, bytes)):
            size = len(value) + 1
        elif isinstance(value, (list, tuple, Mapping)):
            known = self._weights.get(id(value))
            if known is not None:
                return known[1]
            size = 1 + sum(map(self.weight, _members(value)))
            self._weights[id(value)] = (value, size)  # keeps the id taken
        elif isinstance(value, int):
            return 1 + value.bit_length() // 3
        else:
            return 1
        self.allow(size)
        return size


def _members(value: Any) -> Iterable[Any]:
    return [*value.keys(), *value.values()] if isinstance(value, Mapping) else value


def _check_written(budget: Budget, given: Sequence[Any]) -> None:
    budget.allow(sum(map(budget.weight, given)))


def _check_width(budget: Budget, given: Sequence[Any]) -> None:
    _check_written(budget, given)
    text = str(given[0]) if isinstance(given[0], str) else ""
    for value in given[1:]:
        width = len(value) if isinstance(value, str) else value if isinstance(value, int) else 0
        budget.allow(len(text) + width * (1 + text.count("\n")))


def _check_digits(budget: Budget, given: Sequence[Any]) -> None:  # noqa: ARG001
    if any(isinstance(value, int) and abs(value) > 100 for value in given[1:]):
        raise TooMuch("it rounds to more than 100 digits")


def _check_format(budget: Budget, given: Sequence[Any]) -> None:
    text = str(given[0])
    if _FORMAT_WIDTH.search(text):
        raise TooMuch("it formats with a wide or computed width")
    marks = text.count("{") + text.count("%")
    budget.allow(len(text) + marks * max(map(budget.weight, given[1:]), default=0))


def _check_replace(budget: Budget, given: Sequence[Any]) -> None:
    if len(given) >= 3:
        text, old, new = map(str, given[:3])
        count = text.count(old) if old else len(text) + 1
        budget.allow(len(text) + count * len(new))


def _check_pieces(budget: Budget, given: Sequence[Any]) -> None:  # noqa: ARG001
    text = given[0]
    known = len(given) > 1 and isinstance(given[1], str) and given[1]
    pieces = text.count(given[1]) if known else len(text) // 2
    if pieces > _PIECES:
        raise TooMuch(f"it splits a text into {pieces} parts")


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_Check = Callable[[Budget, Sequence[Any]], None]
# Filters that write their input out whole, or more than that.
FILTER_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(
        names("string tojson urlencode escape e forceescape title list safe upper lower"),
        _check_written,
    ),
    **dict.fromkeys(["center", "indent", "batch", "slice"], _check_width),
    "replace": _check_replace,
    "format": _check_format,
    "round": _check_digits,
}
METHOD_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(["center", "ljust", "rjust", "zfill"], _check_width),
    "replace": _check_replace,
    "format": _check_format,
    **dict.fromkeys(["split", "rsplit", "splitlines"], _check_pieces),
}


def result_weight(budget: Budget, operator: str, left: Any, right: Any) -> int:
    """An upper bound of what `left operator right` makes; refuses numbers without end."""
    if operator == "*":
        if isinstance(left, int) and isinstance(right, int):
            return _bounded(left.bit_length() + right.bit_length())
        count = left if isinstance(left, int) else right
        body = right if isinstance(left, int) else left
        return budget.weight(body) * max(1, count) if isinstance(count, int) else 1
    if operator == "**":
        if isinstance(left, int) and isinstance(right, int):
            return _bounded(max(1, left.bit_length()) * max(0, right))
        return 1
    if operator == "%" and isinstance(left, str):
        _check_format(budget, [left, right])
    if operator == "+" and not isinstance(left, (int, float)):
        return budget.weight(left) + budget.weight(right)
    return 1


def _bounded(bits: int) -> int:
    if bits > _INT_BITS:
        raise TooMuch(f"it makes a number of {bits} bits")
    return 1

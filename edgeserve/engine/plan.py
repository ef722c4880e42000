"""What the scheduler decides, as data. The loop carries it out and reports back.

Rounding: `ceil_div`. A page is an index into the pool; the scheduler only counts pages.
"""

from __future__ import annotations

from typing import NamedTuple

from edgeserve.engine.request import Request, Row


def ceil_div(value: int, unit: int) -> int:
    return -(-value // unit)


class Slice(NamedTuple):
    """Compute the next `tokens` pending tokens of a row."""

    row: Row
    tokens: int


class Plan(NamedTuple):
    """One step. With `preempt` set there are no slices: give that row's pages back, plan again."""

    slices: tuple[Slice, ...] = ()
    pages: int = 0  # pages that the slices need beside those their rows hold
    preempt: Row | None = None

    @property
    def is_decode(self) -> bool:
        """Every row computes its one pending token, so native code may go on by itself."""
        return all(tokens == 1 and row.pending == 1 for row, tokens in self.slices)


class Seating(NamedTuple):
    """Give `row` a seat; or first take the seat and pages of a less urgent one."""

    row: Row
    preempt: Row | None = None


class Fork(NamedTuple):
    """The prompt of `leader` is computed up to its last token: make these choices from it."""

    leader: Row
    seated: tuple[Row, ...]
    waiting: tuple[Row, ...]  # no seat or page now: they start as preempted rows do


class Overdue(NamedTuple):
    """A request past one of its deadlines."""

    request: Request
    in_queue: bool  # the one for getting a seat

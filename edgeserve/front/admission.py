"""Who may enter: seats, places in the queue, and how long to stay away otherwise."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from edgeserve.errors import Busy, ShuttingDown
from edgeserve.generation import GenerationRequest

SMOOTHING = 0.2  # weight of the newest request in the measured duration
SHORTEST_S, LONGEST_S = 1, 60  # of Retry-After


class Pass:
    """The right of one request to be in the engine. Given back exactly once."""

    def __init__(self, give: Callable[[Pass], None], seats: int, since: float) -> None:
        self._give = give
        self.seats = seats
        self.since = since
        self.is_waiting = True

    def give(self) -> None:
        """The request is over, or was refused. Harmless the second time."""
        give, self._give = self._give, _given
        give(self)


def _given(_: Pass) -> None: ...


class Admission:
    """Counts the requests of one model on the loop's thread. A choice takes a seat."""

    def __init__(
        self, max_queued: int, clock: Callable[[], float] = time.monotonic, seats: int = 1
    ) -> None:
        self.seats = seats
        self.is_closed = False
        self._max_queued = max_queued
        self._clock = clock
        self._taken = 0
        self._waiting = 0
        self._passes = 0
        self._duration_s = 1.0  # of a seat, measured
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def active(self) -> int:
        """Requests with a seat."""
        return self._passes - self._waiting

    @property
    def queued(self) -> int:
        """Requests without one yet."""
        return self._waiting

    def take(self, request: GenerationRequest) -> Pass:
        """Let the request in, or raise `Busy` with a time after which to try again."""
        if self.is_closed:
            raise ShuttingDown
        seats = min(request.choices, self.seats)
        if self._taken + seats > self.seats and self._waiting >= self._max_queued:
            raise self.busy()
        self._taken += seats
        self._waiting += 1
        self._passes += 1
        self._empty.clear()
        return Pass(self._give, seats, self._clock())

    def seated(self, given: Pass) -> None:
        """The request got its seat."""
        if given.is_waiting:
            given.is_waiting = False
            given.since = self._clock()
            self._waiting -= 1

    def _give(self, given: Pass) -> None:
        self._taken -= given.seats
        self._passes -= 1
        if not self._passes:
            self._empty.set()
        if given.is_waiting:
            self._waiting -= 1
        else:
            duration = self._clock() - given.since
            self._duration_s += SMOOTHING * (duration - self._duration_s)

    async def emptied(self) -> None:
        """Wait until no request is in."""
        await self._empty.wait()

    def busy(self) -> Busy:
        message = f"all {self.seats} seats and {self._max_queued} places in the queue are taken"
        return Busy(f"{message}; try again later", retry_after_s=self.retry_after_s())

    def retry_after_s(self) -> int:
        """Whole seconds until a seat is likely to be free for one request more."""
        wait = (self._waiting + 1) * self._duration_s / self.seats
        return max(SHORTEST_S, min(LONGEST_S, math.ceil(wait)))

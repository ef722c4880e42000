"""Several requests of one call as one stream of events, in the order in which they happen.

Each request has a task that submits it and passes its events on to one queue, so no prompt waits
for another. A call never takes more of the engine than `window` requests; when the engine is full,
the rest waits for the call's own requests to end instead of failing the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

import msgspec

from edgeserve.errors import Busy, Cancelled, EdgeserveError
from edgeserve.generation import Admitted, GenerationRequest, Pieces, PromptLogprobs, Usage
from edgeserve.ticket import Generator, Ticket

Arrival = Admitted | Pieces | PromptLogprobs | Usage | Exception


class Merge:
    """The requests of one call; indices are positions in `requests`."""

    def __init__(
        self, generator: Generator, requests: Sequence[GenerationRequest], window: int
    ) -> None:
        self._generator = generator
        self._waiting = deque(enumerate(requests))
        self._unfinished = len(requests)
        self._window = window
        self._arrivals: asyncio.Queue[tuple[int, Arrival]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tickets: dict[int, Ticket] = {}
        self._closed = False
        self.cached: dict[int, int] = {}  # prompt tokens reused, by index of the request
        self.usages: list[Usage] = []

    async def start(self) -> None:
        """Submit what the window holds; returns when the first request has its seat."""
        self._fill()
        try:
            index, first = await self._arrivals.get()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if isinstance(first, Exception):
            self.cancel()
            raise first
        self._note(index, first)

    async def events(self) -> AsyncIterator[tuple[int, Pieces | PromptLogprobs]]:
        """To the end of all requests. The first error of any of them ends the whole call."""
        try:
            while self._unfinished:
                index, arrival = await self._arrivals.get()
                if isinstance(arrival, Exception):
                    raise arrival
                if isinstance(arrival, (Pieces, PromptLogprobs)):
                    yield index, arrival
                else:
                    self._note(index, arrival)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Free all rows; a reader wakes with `Cancelled`. Harmless when all have ended."""
        if self._closed:
            return
        self._closed = True
        self._waiting.clear()
        for ticket in self._tickets.values():
            ticket.cancel()
        for task in self._tasks:
            task.cancel()
        self._arrivals.put_nowait((0, Cancelled()))

    def _note(self, index: int, arrival: Arrival) -> None:
        if isinstance(arrival, Admitted):
            self.cached[index] = arrival.cached_tokens
        elif isinstance(arrival, Usage):
            self.usages.append(arrival)
            self._unfinished -= 1

    def _fill(self) -> None:
        while self._waiting and len(self._tasks) < self._window and not self._closed:
            index, request = self._waiting.popleft()
            task = asyncio.create_task(self._run(index, request))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._fill()

    async def _run(self, index: int, request: GenerationRequest) -> None:
        try:
            fresh = msgspec.structs.replace(request, id=self._generator.next_id())
            async with await self._generator.submit(fresh) as ticket:
                self._tickets[index] = ticket
                assert ticket.admitted is not None
                self._arrivals.put_nowait((index, ticket.admitted))
                async for event in ticket.events():
                    self._arrivals.put_nowait((index, event))
                assert ticket.usage is not None
                self._arrivals.put_nowait((index, ticket.usage))
        except EdgeserveError as error:
            if error.code == Busy.code and len(self._tasks) > 1 and index not in self._tickets:
                self._window = len(self._tasks) - 1
                self._waiting.appendleft((index, request))
            else:
                self._arrivals.put_nowait((index, error))
        except Exception as error:
            self._arrivals.put_nowait((index, error))
        finally:
            self._tickets.pop(index, None)

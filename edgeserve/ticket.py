"""What a caller holds of a request in an engine: events come out, `cancel` goes in.

Belongs to one asyncio loop. A `Desk` is the table of open tickets of one engine connection; it
is fed events and routes them. Whoever stops reading a ticket cancels it: `async with` does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from edgeserve.errors import EdgeserveError
from edgeserve.generation import (
    Admitted,
    Event,
    Failed,
    Finished,
    GenerationRequest,
    Pieces,
    PromptLogprobs,
    Usage,
)


class Ticket:
    """One request in an engine. `admitted` and `usage` are set when their events have come."""

    def __init__(self, request_id: int, cancel: Callable[[int], None]) -> None:
        self.id = request_id
        self.admitted: Admitted | None = None
        self.usage: Usage | None = None
        self._cancel = cancel
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._ended = False  # for the reader: by its event, or by leaving
        self.has_ended = False  # the engine is done with it
        self._on_end: list[Callable[[], None]] = []

    def deliver(self, event: Event) -> None:
        if isinstance(event, Admitted):
            self.admitted = event
        self._events.put_nowait(event)
        if isinstance(event, (Finished, Failed)):
            self._ended = self.has_ended = True
            for callback in self._on_end:
                callback()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call back when the engine is done with the request, however it ended."""
        self._on_end.append(callback)

    async def admission(self) -> Admitted:
        """Wait for the seat. Raises the error that refused it."""
        event = await self._events.get()
        if isinstance(event, Failed):
            raise EdgeserveError.from_info(event.error)
        assert isinstance(event, Admitted), "the first event of a request is its admission"
        return event

    async def admit(self) -> Ticket:
        """This ticket once it has its seat. A caller that stops waiting cancels the request."""
        try:
            await self.admission()
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self

    async def events(self) -> AsyncIterator[Pieces | PromptLogprobs]:
        """Everything after admission, to the end. Raises the error that broke the request."""
        while True:
            event = await self._events.get()
            if isinstance(event, Failed):
                raise EdgeserveError.from_info(event.error)
            if isinstance(event, Finished):
                self.usage = event.usage
                return
            assert isinstance(event, (Pieces, PromptLogprobs))
            yield event

    def cancel(self) -> None:
        """Free the request's row before the next step. Harmless when it has ended."""
        if not self._ended:
            self._ended = True
            self._cancel(self.id)

    async def __aenter__(self) -> Ticket:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()


class Desk:
    """The open tickets of one engine connection, by request id."""

    def __init__(self) -> None:
        self._open: dict[int, Ticket] = {}
        self._last = 0

    def next_id(self) -> int:
        self._last += 1
        return self._last

    def open(self, request_id: int, cancel: Callable[[int], None]) -> Ticket:
        """A ticket for a request that is about to be handed over."""
        ticket = Ticket(request_id, cancel)
        self._open[request_id] = ticket
        return ticket

    def forget(self, request_id: int) -> None:
        """The request was never handed over."""
        self._open.pop(request_id, None)

    def deliver(self, event: Event) -> None:
        """Route an event. Events of closed tickets are dropped: their reader has left."""
        ticket = self._open.get(event.id)
        if ticket is None:
            return
        if isinstance(event, (Finished, Failed)):
            del self._open[event.id]
        ticket.deliver(event)

    def fail_all(self, error: EdgeserveError) -> None:
        """The engine is gone: every open ticket ends with this error."""
        for request_id in list(self._open):
            self.deliver(Failed(request_id, error.info()))

    def __len__(self) -> int:
        return len(self._open)


class Generator(Protocol):
    """Something that runs requests: a replica behind a socket, a router, an engine in-process."""

    def next_id(self) -> int:
        """A fresh id for GenerationRequest.id."""
        ...

    async def submit(self, request: GenerationRequest) -> Ticket:
        """Hand the request over; returns its ticket after `Admitted` came. Raises `Busy`,
        `EngineUnavailable`, `ModelLoading`, `ShuttingDown`."""
        ...

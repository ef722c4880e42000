"""A `Generator` whose every event a test decides, for what a real engine cannot be made to do on
command: refusals at a chosen moment, a chosen order of pieces, a failure half-way."""

from __future__ import annotations

import asyncio

from edgeserve.errors import Busy, Cancelled, EdgeserveError
from edgeserve.generation import (
    Admitted,
    Failed,
    Finish,
    Finished,
    GenerationRequest,
    Piece,
    Pieces,
    Usage,
)
from edgeserve.ticket import Desk, Ticket


class EngineDouble:
    """Answers each request with `text`, one piece per character of each choice."""

    def __init__(self, text: str = "abc", places: int = 10**6) -> None:
        self.requests: list[GenerationRequest] = []
        self.cancelled: list[int] = []
        self.most = 0  # requests that were open at the same time
        self.hold = asyncio.Event()  # pieces wait for it
        self.hold.set()
        self.broken: dict[tuple[int, ...], EdgeserveError] = {}  # by prompt, after one piece
        self._text = text
        self._places = places
        self._desk = Desk()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def next_id(self) -> int:
        return self._desk.next_id()

    @property
    def open(self) -> int:
        return len(self._desk)

    async def submit(self, request: GenerationRequest) -> Ticket:
        await asyncio.sleep(0)
        if len(self._desk) >= self._places:
            raise Busy("all places are taken", retry_after_s=1)
        self.requests.append(request)
        ticket = self._desk.open(request.id, self._cancel)
        self.most = max(self.most, len(self._desk))
        self._tasks[request.id] = asyncio.create_task(self._answer(request))
        return await ticket.admit()

    def _cancel(self, request_id: int) -> None:
        self.cancelled.append(request_id)
        self._tasks[request_id].cancel()
        self._desk.deliver(Failed(request_id, Cancelled().info()))

    async def _answer(self, request: GenerationRequest) -> None:
        self._desk.deliver(Admitted(request.id, cached_tokens=1))
        for position, char in enumerate(self._text):
            await asyncio.sleep(0)
            await self.hold.wait()
            last = position == len(self._text) - 1
            finish = Finish.STOP if last else None
            pieces = tuple(
                Piece(choice, char, (ord(char),), finish=finish)
                for choice in range(request.choices)
            )
            self._desk.deliver(Pieces(request.id, pieces))
            if request.prompt in self.broken:
                self._desk.deliver(Failed(request.id, self.broken[request.prompt].info()))
                return
        made = len(self._text) * request.choices
        usage = Usage(len(request.prompt), made, 1, 0.5, 1.0, 2.0, made - request.choices, 0)
        self._desk.deliver(Finished(request.id, usage))

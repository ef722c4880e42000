"""Whether the server still takes work, and how many requests are under way."""

from __future__ import annotations

import asyncio

from edgeserve.errors import ShuttingDown
from edgeserve.http.hangup import Client
from edgeserve.pipeline.answer import Answer


class Drain:
    """Belongs to the loop that serves HTTP."""

    def __init__(self) -> None:
        self.draining = False
        self._clients: set[Client] = set()  # of requests of any route
        self.answers: set[Answer] = set()  # generations under way
        self._idle = asyncio.Event()

    @property
    def active(self) -> int:
        """Requests of any route."""
        return len(self._clients)

    def enter(self, client: Client) -> None:
        self._clients.add(client)
        self._idle.clear()

    def leave(self, client: Client) -> None:
        self._clients.discard(client)
        if not self._clients:
            self._idle.set()

    def begin(self) -> None:
        """New work is refused from now on, and what is not yet here as a whole is new."""
        self.draining = True
        for client in self._clients:
            client.refuse(ShuttingDown())
        if not self._clients:
            self._idle.set()

    async def idle(self, timeout_s: float) -> bool:
        """Wait for the requests under way; False when the time was too short."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        except asyncio.TimeoutError:
            return False
        return True

    def cancel_answers(self) -> None:
        """End what still generates; its clients get the error as an answer or as an event."""
        for answer in list(self.answers):
            answer.cancel()

    def check(self) -> None:
        if self.draining:
            raise ShuttingDown

"""The usual call, one request: `Merge` without its queue and tasks, 10 us less per step."""

from __future__ import annotations

from collections.abc import AsyncIterator

from edgeserve.generation import GenerationRequest, Pieces, PromptLogprobs, Usage
from edgeserve.ticket import Generator, Ticket


class Single:
    """The request of one call."""

    def __init__(self, generator: Generator, request: GenerationRequest) -> None:
        self._generator = generator
        self._request = request
        self._ticket: Ticket | None = None
        self.cached: dict[int, int] = {}  # prompt tokens reused, by index of the request
        self.usages: list[Usage] = []

    async def start(self) -> None:
        self._ticket = await self._generator.submit(self._request)
        assert self._ticket.admitted is not None
        self.cached[0] = self._ticket.admitted.cached_tokens

    async def events(self) -> AsyncIterator[tuple[int, Pieces | PromptLogprobs]]:
        assert self._ticket is not None
        async for event in self._ticket.events():
            yield 0, event
        assert self._ticket.usage is not None
        self.usages.append(self._ticket.usage)

    def cancel(self) -> None:
        """A reader wakes when the engine confirms: its row is free then."""
        if self._ticket is not None:
            self._ticket.cancel()

"""An engine in this process: what `LLM(...)` runs on. Belongs to one asyncio loop."""

from __future__ import annotations

import asyncio

from edgeserve.engine.runtime import Runtime
from edgeserve.engine.service import Service
from edgeserve.errors import ShuttingDown
from edgeserve.generation import GenerationRequest
from edgeserve.model_info import ModelInfo
from edgeserve.stats import EngineStats
from edgeserve.ticket import Desk, Ticket


class InlineReplica:
    """A `Generator` over a `Service` of its own. Make, use and close it on `loop`'s thread."""

    def __init__(self, runtime: Runtime, loop: asyncio.AbstractEventLoop) -> None:
        self.info: ModelInfo = runtime.info
        self._loop = loop
        self._desk = Desk()
        self._service = Service(runtime)
        self._service.start()
        self._is_open = True
        loop.add_reader(self._service.fileno(), self._deliver)

    def next_id(self) -> int:
        return self._desk.next_id()

    async def submit(self, request: GenerationRequest) -> Ticket:
        if not self._is_open:
            raise ShuttingDown
        ticket = self._desk.open(request.id, self._service.cancel)
        self._service.submit(request)
        return await ticket.admit()

    def stats(self) -> EngineStats:
        return self._service.stats()

    def clear_cache(self) -> None:
        """Forget all cached prefixes."""
        self._service.clear_cache()

    def __len__(self) -> int:
        """Open requests."""
        return len(self._desk)

    async def close(self) -> None:
        """Stop the engine. Open requests fail with `ShuttingDown`."""
        if self._is_open:
            self._is_open = False
            try:
                await asyncio.to_thread(self._service.close)
            except RuntimeError:  # the interpreter is ending and starts no more threads
                self._service.close()
            self._loop.remove_reader(self._service.fileno())
            self._deliver()

    def _deliver(self) -> None:
        for event in self._service.drain():
            self._desk.deliver(event)

"""HTTP over an engine in this process: what `LLM.serve` runs.

The server lives on the loop that the engine's replica lives on, in a background thread; the caller
waits, and turns Ctrl-C into a drain.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from edgeserve.config import EngineOptions, ServeOptions
from edgeserve.errors import ShuttingDown
from edgeserve.front.admission import Admission
from edgeserve.front.replica import Replica
from edgeserve.front.router import Router
from edgeserve.front.status import State as Life
from edgeserve.front.status import Status
from edgeserve.http.app import Application
from edgeserve.http.front import ReplicaCount, State
from edgeserve.http.listen import bind
from edgeserve.http.server import HttpServer
from edgeserve.pipeline.model import ModelOptions, ServedModel
from edgeserve.stats import EngineStats
from edgeserve.ticket import Generator


class Engine(Generator, Protocol):
    """The replica inside an `LLM`."""

    def stats(self) -> EngineStats: ...

    def __len__(self) -> int: ...


class Seats:
    """The engine as the router's only replica."""

    status = Status(Life.READY)

    def __init__(self, engine: Engine) -> None:
        self.submit = engine.submit
        self._engine = engine

    def __len__(self) -> int:
        return len(self._engine)


class Entrance:
    """Queue and time limits of the server before an engine that `LLM` uses without them. The ids
    are the engine's, which both share."""

    def __init__(self, engine: Engine, seats: int, options: EngineOptions) -> None:
        admission = Admission(options.max_queued_requests, seats=seats)
        router = Router([cast(Replica, Seats(engine))], admission, options, ShuttingDown)
        self.next_id = engine.next_id
        self.submit = router.submit


class InlineFront:
    """One replica that is always ready."""

    state: State = "ready"
    reason = ""
    replicas = ReplicaCount(1, 1)

    def __init__(self, model: ServedModel, replica: Engine) -> None:
        self.model = model
        self.name = model.name
        self._replica = replica

    @property
    def queued(self) -> int:
        return self._replica.stats().scheduling.queued

    def stats(self) -> list[EngineStats]:
        return [self._replica.stats()]


class InlineServer:
    """Serves from the moment it is made, until `stop`."""

    def __init__(
        self,
        model: ServedModel,
        replica: Engine,
        options: ServeOptions,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        wishes = ModelOptions(
            name=options.model_name,
            sampler=options.sampler,
            default_max_tokens=options.default_max_tokens,
            enable_thinking=options.enable_thinking,
            tool_call_parser=options.tool_call_parser,
            reasoning_parser=options.reasoning_parser,
        )
        entrance = Entrance(replica, model.info.limits.seats, options.engine)
        front = InlineFront(model.with_options(wishes, entrance), replica)
        application = Application(front, options)
        sock = bind(options.host, options.port)
        self._loop = loop
        self._server = HttpServer(application, sock, drain_timeout_s=options.drain_timeout_s)
        self._running = asyncio.run_coroutine_threadsafe(self._server.run(), loop)
        self.url = f"http://{options.host}:{self._server.port}"

    def stop(self) -> None:
        """The first call drains, the second ends now. Any thread."""
        if not self._running.done():
            self._loop.call_soon_threadsafe(self._server.stop)

    def wait(self) -> None:
        """Until the server has ended. Ctrl-C stops it."""
        while True:
            try:
                return self._running.result()
            except KeyboardInterrupt:
                self.stop()

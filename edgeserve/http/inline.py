"""HTTP over an engine in this process: what `LLM.serve` runs.

The server lives on the loop that the engine's replica lives on, in a background thread; the caller
waits, and turns Ctrl-C into a drain.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from edgeserve.config import ServeOptions
from edgeserve.http.app import Application
from edgeserve.http.front import ReplicaCount, State
from edgeserve.http.server import HttpServer, bind
from edgeserve.pipeline.model import ModelOptions, ServedModel
from edgeserve.stats import EngineStats


class HasStats(Protocol):
    def stats(self) -> EngineStats: ...


class InlineFront:
    """One replica that is always ready."""

    state: State = "ready"
    reason = ""
    replicas = ReplicaCount(1, 1)

    def __init__(self, model: ServedModel, replica: HasStats) -> None:
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
        replica: HasStats,
        options: ServeOptions,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        wishes = ModelOptions(
            name=options.model_name,
            sampler=options.sampler,
            default_max_tokens=options.default_max_tokens,
            enable_thinking=options.enable_thinking == "on",
        )
        application = Application(InlineFront(model.with_options(wishes), replica), options)
        sock = bind(options.host, options.port)
        self._loop = loop
        self._server = HttpServer(application, sock, drain_timeout_s=options.drain_timeout_s)
        self._running = asyncio.run_coroutine_threadsafe(self._server.run(signals=False), loop)
        self.url = f"http://{options.host}:{self._server.port}"

    def stop(self) -> None:
        """The first call drains, the second ends now. Any thread."""
        self._loop.call_soon_threadsafe(self._server.stop)

    def wait(self) -> None:
        """Until the server has ended. Ctrl-C stops it."""
        while True:
            try:
                return self._running.result()
            except KeyboardInterrupt:
                self.stop()

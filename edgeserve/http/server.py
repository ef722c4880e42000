"""Runs the application with uvicorn on a socket that is bound before anything else happens.

The first SIGTERM or SIGINT drains: readiness turns 503, new work is refused, requests under way
finish within the drain timeout, and the listening socket stays open meanwhile so that probes see
it. A second signal, or the end of the timeout, ends what is left with an error, never a cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator

import uvicorn

from edgeserve.http.app import Application
from edgeserve.http.connection import Connection
from edgeserve.log import Log

LOG = Log("http")
KEEP_ALIVE_S = 75
LAST_WORDS_S = 2.0  # for error events to reach clients that are cut off


class HttpServer:
    """One running server. `run` on the loop that the front lives on."""

    def __init__(
        self, application: Application, sock: socket.socket, *, drain_timeout_s: float
    ) -> None:
        self._drain = application.serving.drain
        self._sock = sock
        self._drain_timeout_s = drain_timeout_s
        self._stopping = asyncio.Event()
        self._now = asyncio.Event()
        self._server = _Uvicorn(
            uvicorn.Config(
                application.asgi,
                http=Connection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=5,
            )
        )

    @property
    def port(self) -> int:
        return int(self._sock.getsockname()[1])

    def stop(self) -> None:
        """As a signal does: the first call drains, the second ends now."""
        if self._stopping.is_set():
            self._now.set()
        self._stopping.set()
        self._drain.begin()

    async def run(self, *, on_drained: Callable[[], Awaitable[None]] | None = None) -> None:
        """Serve until stopped. `on_drained` is where the front closes: after the drain, before the
        connections are closed, so that its last errors still reach clients."""
        serving = asyncio.create_task(self._server.serve(sockets=[self._sock]))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await self._finish(on_drained)
        elif on_drained is not None:
            await on_drained()
        stopping.cancel()
        self._server.should_exit = True
        await serving

    async def _finish(self, on_drained: Callable[[], Awaitable[None]] | None) -> None:
        if self._drain.active:
            LOG.info("drain", active=self._drain.active, timeout_s=self._drain_timeout_s)
        idle = asyncio.create_task(self._drain.idle(self._drain_timeout_s))
        now = asyncio.create_task(self._now.wait())
        await asyncio.wait({idle, now}, return_when=asyncio.FIRST_COMPLETED)
        now.cancel()
        drained = idle.done() and idle.result()
        idle.cancel()
        if not drained and self._drain.active:
            LOG.warning("drain_cut", active=self._drain.active)
        if on_drained is not None:
            await on_drained()
        self._drain.cancel_answers()
        await self._drain.idle(LAST_WORDS_S)


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: a signal means more here than the end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

"""The whole of `edgeserve serve` in one process: socket, front, application, end.

The socket is bound first, so that health can be asked while the model loads. The worker starts
next: what it and this process import takes as long as the rest of a start, and so goes on side by
side. When the model cannot be served, the error is raised after all workers are gone.
"""

from __future__ import annotations

import asyncio
import socket
from importlib import import_module
from typing import Protocol

import uvloop

from edgeserve import log
from edgeserve.config import ServeOptions
from edgeserve.http.listen import bind
from edgeserve.http.signals import Signals
from edgeserve.http.supervised import Progress, SupervisedFront


class OnReady(Protocol):
    def __call__(self, url: str, *, model: str, chat: bool, key: bool) -> None: ...


def serve(options: ServeOptions, *, progress: Progress, on_ready: OnReady) -> int:
    """Serve until a signal; returns the exit code. Raises `EdgeserveError` when it cannot start."""
    log.configure(options.log_level)
    sock = bind(options.host, options.port)
    return uvloop.run(_serve(options, sock, progress, on_ready))


async def _serve(
    options: ServeOptions, sock: socket.socket, progress: Progress, on_ready: OnReady
) -> int:
    with Signals() as signals:
        front = SupervisedFront(options, progress)
        starting = asyncio.create_task(front.start())
        await asyncio.to_thread(import_module, "edgeserve.http.server")
        from edgeserve.http.app import Application
        from edgeserve.http.server import HttpServer

        application = Application(front, options)
        server = HttpServer(application, sock, drain_timeout_s=options.drain_timeout_s)
        signals.pass_to(server.stop)
        serving = asyncio.create_task(server.run(on_drained=front.close))
        await asyncio.wait({serving, starting}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():  # stopped while loading
            starting.cancel()
            await serving
            return 0
        try:
            model = starting.result()
        except BaseException:
            server.stop()
            server.stop()
            await serving
            raise
        url = f"http://{_authority(options.host, server.port)}"
        has_chat = model.template is not None
        on_ready(url, model=model.name, chat=has_chat, key=bool(options.api_keys))
        await serving
        return 0


def _authority(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    return f"[{shown}]:{port}" if ":" in shown and not shown.startswith("[") else f"{shown}:{port}"

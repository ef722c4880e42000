"""The worker process: one model, its engine thread, and this loop, which holds the socket.

Started by a front (`front/launch.py`), which sends `Start` first. The loop sleeps in epoll; the
engine's ring wakes it once a step, and all that the step gave leaves as one frame.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable

import edgeserve
from edgeserve.config import EngineOptions
from edgeserve.engine.runtime import Runtime
from edgeserve.engine.service import Service
from edgeserve.errors import EdgeserveError, InternalError
from edgeserve.log import Log, configure
from edgeserve.worker.death import die_with_parent
from edgeserve.worker.wire.connection import Connection
from edgeserve.worker.wire.message import (
    PROTOCOL,
    Cancel,
    ClearCache,
    Events,
    Fault,
    Hello,
    Message,
    Ping,
    Pong,
    Progress,
    Ready,
    Start,
    Stop,
    Submit,
)

log = Log("worker")

# With Python's 5 ms, each step would wait for the loop whenever that is busy.
SWITCH_INTERVAL_S = 0.0005
PROGRESS_S = 0.05  # between two progress messages of one stage
FLUSH_S = 5.0

Load = Callable[[EngineOptions, Callable[[str, int, int], None], str, str], Runtime]


class Worker:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, load: Callable[[], Load]
    ) -> None:
        self._loop = loop
        self._load = load
        self._service: Service | None = None
        self._loading: asyncio.Task[None] | None = None
        self._progress: tuple[str, float] = ("", 0.0)  # last stage told, and when
        self.left = loop.create_future()  # the exit code
        self._connection = Connection(loop, sock, self._receive, self._lost)
        self._connection.send(Hello(PROTOCOL, edgeserve.__version__, os.getpid()))

    def _receive(self, message: Message) -> None:
        if isinstance(message, Start) and self._loading is None:
            self._loading = self._loop.create_task(self._start(message))
        elif isinstance(message, Stop):
            self._leave(0)
        elif isinstance(message, Ping):
            self._pong()
        elif self._service is not None:
            self._serve(self._service, message)

    @staticmethod
    def _serve(service: Service, message: Message) -> None:
        if isinstance(message, Submit):
            service.submit(message.request)
        elif isinstance(message, Cancel):
            service.cancel(message.id)
        elif isinstance(message, ClearCache):
            service.clear_cache()

    async def _start(self, start: Start) -> None:
        try:
            runtime = await asyncio.to_thread(self._load_now, start)
            self._service = Service(runtime)
        except EdgeserveError as error:
            self._fail(error)
        except Exception as error:
            log.fault("loading_failed", error)
            self._fail(InternalError("the model could not be loaded"))
        else:
            self._service.start()
            self._loop.add_reader(self._service.fileno(), self._deliver)
            self._connection.send(Ready(runtime.info))

    def _load_now(self, start: Start) -> Runtime:
        return self._load()(start.options, self._tell, start.identity, start.name)

    def _tell(self, stage: str, done: int, total: int) -> None:
        """Progress of loading, from its thread; most of it is not worth a message."""
        now = time.monotonic()
        last, when = self._progress
        if stage != last or now - when >= PROGRESS_S or done >= total:
            self._progress = (stage, now)
            message = Progress(stage, done, total)
            self._loop.call_soon_threadsafe(self._connection.send, message)

    def _deliver(self) -> None:
        assert self._service is not None
        events = self._service.drain()
        if events:
            self._connection.send(Events(tuple(events)))
        if self._service.failure is not None:
            self._fail(self._service.failure)

    def _pong(self) -> None:
        if self._service is not None:
            self._connection.send(Pong(self._service.stats(), self._service.stalled_s))

    def _fail(self, error: EdgeserveError) -> None:
        self._connection.send(Fault(error.info()))
        self._leave(1)

    def _lost(self, reason: str) -> None:
        """The front is gone: nobody is left to serve, and nothing to be saved."""
        log.error("front_lost", reason=reason)
        os._exit(1)

    def _leave(self, code: int) -> None:
        if not self.left.done():
            self.left.set_result(code)

    def close(self) -> None:
        """End open requests, tell the front, and go."""
        if self._service is not None:
            self._loop.remove_reader(self._service.fileno())
            self._service.close()
            events = self._service.drain()
            if events:
                self._connection.send(Events(tuple(events)))
        self._connection.flush(FLUSH_S)
        self._connection.close()


def load_by_name(name: str) -> Load:
    """The function that makes a `Runtime`, as `module:function`."""
    module, _, function = name.partition(":")
    load: Load = getattr(importlib.import_module(module), function)
    return load


def new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def main(descriptor: int, parent: int, loader: str, log_level: str) -> None:
    """Serve the front at the other end of the socket `descriptor` until told to stop."""
    die_with_parent(parent)
    # A terminal's Ctrl-C and a service manager's SIGTERM reach the whole group; the front decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    configure(log_level)
    loop = new_loop()
    asyncio.set_event_loop(loop)
    sock = socket.socket(fileno=descriptor)
    worker = Worker(loop, sock, lambda: load_by_name(loader))
    code = loop.run_until_complete(worker.left)
    worker.close()
    # Not sys.exit: an interpreter that is torn down under running native threads may crash.
    sys.stderr.flush()
    os._exit(code)

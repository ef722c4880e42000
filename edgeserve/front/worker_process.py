"""One worker process, from its start to its end: handshake, heartbeats, its last words.

The `Replica` that owns it is told of events and of the end; it decides about replacement.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from edgeserve.errors import EdgeserveError, ErrorInfo
from edgeserve.front.launch import LOADER, launch
from edgeserve.generation import Event
from edgeserve.model_info import ModelInfo
from edgeserve.stats import EngineStats
from edgeserve.worker.wire.connection import CLOSED, Connection
from edgeserve.worker.wire.message import (
    PROTOCOL,
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
)


class Heartbeat(NamedTuple):
    """When a worker counts as silent, in seconds."""

    interval_s: float = 1.0
    silent_s: float = 15.0  # without any answer
    stalled_s: float = 300.0  # an engine with work and no step done
    exit_s: float = 5.0  # to leave by itself when told to


class WorkerProcess:
    """Belongs to one asyncio loop. `ready` and `ended` are futures; `ended` never fails."""

    def __init__(
        self,
        start: Start,
        *,
        deliver: Callable[[Event], None],
        progress: Callable[[str, int, int], None],
        heartbeat: Heartbeat,
        loader: str = LOADER,
        log_level: str = "info",
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._progress = progress
        self._heartbeat = heartbeat
        self._missed = 0  # beats without any sign of life
        self._stalled = 0  # answers in a row that tell of a stalled engine
        self._reason = ""
        self._fault: ErrorInfo | None = None
        self._start = start
        self._greeted = False
        self._ending: asyncio.Task[None] | None = None
        self.stats = EngineStats()
        self.ready: asyncio.Future[ModelInfo] = self._loop.create_future()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._process, sock = launch(loader=loader, log_level=log_level)
        self.connection = Connection(self._loop, sock, self._receive, self._lost)
        self._beat = self._loop.call_later(heartbeat.interval_s, self._tick)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def fault(self) -> EdgeserveError | None:
        """What the worker itself said about its end."""
        return None if self._fault is None else EdgeserveError.from_info(self._fault)

    def _receive(self, message: Message) -> None:
        self._missed = 0
        if isinstance(message, Events):
            for event in message.events:
                self._deliver(event)
        elif isinstance(message, Pong):
            self._look_at(message)
        elif isinstance(message, Hello):
            self._greet(message)
        elif isinstance(message, Progress):
            self._progress(message.stage, message.done, message.total)
        elif isinstance(message, Ready) and not self.ready.done():
            self.ready.set_result(message.info)
        elif isinstance(message, Fault):
            self._fault = message.error

    def _greet(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL or self._greeted:
            self.kill(f"it speaks protocol {hello.protocol}, this server {PROTOCOL}")
            return
        self._greeted = True
        self.connection.send(self._start)

    def _look_at(self, pong: Pong) -> None:
        self.stats = pong.stats
        self._stalled = self._stalled + 1 if pong.stalled_s > self._heartbeat.stalled_s else 0
        if self._stalled > 1:  # once may be a machine that slept
            self.kill(f"its engine made no step in {pong.stalled_s:.0f} s")

    def _tick(self) -> None:
        """Ask for a sign of life; loading has its own time limit.

        Beats are counted, not seconds: when this loop was held up, the worker is not to blame.
        """
        beat = self._heartbeat
        if self.ready.done():
            silent_s = self._missed * beat.interval_s
            if silent_s > beat.silent_s:
                self.kill(f"it did not answer for {silent_s:.0f} s")
                return
            self.connection.send(Ping())
            self._missed += 1
        self._beat = self._loop.call_later(beat.interval_s, self._tick)

    def kill(self, reason: str) -> None:
        """End a worker that does not answer, or is wrong."""
        self._reason = self._reason or reason
        self._process.kill()
        self.connection.close()
        self._end()

    async def stop(self) -> None:
        """Ask the worker to leave; kill it when it does not."""
        self._reason = self._reason or "it was stopped"
        self.connection.send(Stop())
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.ended), self._heartbeat.exit_s)
            return
        self.kill("it did not stop when told to")
        await self.ended

    def _lost(self, reason: str) -> None:
        """The connection is gone: the process has ended, or must."""
        if reason is not CLOSED:
            self._reason = self._reason or reason
            self._process.kill()
        self._end()

    def _end(self) -> None:
        self._beat.cancel()
        if self._ending is None:
            self._ending = self._loop.create_task(self._await_exit())

    async def _await_exit(self) -> None:
        """Wait for the process, which has no connection any more, and tell why it ended."""
        try:
            code = await asyncio.to_thread(self._process.wait, self._heartbeat.exit_s)
        except subprocess.TimeoutExpired:
            self._reason = self._reason or CLOSED
            self._process.kill()
            code = await asyncio.to_thread(self._process.wait)
        self.ended.set_result(self._reason or exit_reason(code))


def exit_reason(code: int) -> str:
    """Why a process ended by itself, from its exit code."""
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"it was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was killed by signal {-code}"

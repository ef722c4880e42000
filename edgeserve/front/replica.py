"""A replica: a worker that is kept running. Belongs to one asyncio loop.

A worker that crashes, falls silent or breaks the protocol fails its open requests with
`EngineUnavailable` and is replaced, up to `restarts` times with growing pauses; then the replica
has failed. A worker that ran well for a while starts the count again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError, EngineUnavailable, InvalidRequest, ShuttingDown
from edgeserve.front.launch import LOADER
from edgeserve.front.status import State, Status, refusal
from edgeserve.front.worker_process import Heartbeat, WorkerProcess
from edgeserve.generation import GenerationRequest
from edgeserve.log import Log
from edgeserve.model_info import ModelInfo
from edgeserve.stats import EngineStats
from edgeserve.ticket import Desk, Ticket
from edgeserve.worker.wire.message import PROTOCOL, Cancel, ClearCache, Start, Submit

log = Log("front")


class Care(NamedTuple):
    """How a replica looks after its worker."""

    startup_timeout_s: float = 600.0
    restarts: int = 3
    first_pause_s: float = 0.1  # before a replacement; doubles each time
    longest_pause_s: float = 30.0
    well_s: float = 300.0  # a worker that served so long starts the count again
    heartbeat: Heartbeat = Heartbeat()
    loader: str = LOADER
    log_level: str = "info"


class Replica:
    """A `Generator` behind a socket. `info` is set once it has been ready."""

    def __init__(
        self,
        options: EngineOptions,
        identity: str,
        name: str,
        care: Care = Care(),  # noqa: B008 - immutable
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.info: ModelInfo | None = None
        self._name = name
        self._start = Start(PROTOCOL, options, identity, name)
        self._care = care
        self._on_change = on_change
        self._status = Status(State.LOADING)
        self._failure: EdgeserveError | None = None
        self._worker: WorkerProcess | None = None
        self._desk = Desk()
        self._keeper: asyncio.Task[None] | None = None
        self.restarts = 0  # over its life

    def start(self) -> None:
        """Begin to load; returns at once. Call on the loop's thread, which must stay alive."""
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @property
    def status(self) -> Status:
        return self._status

    @property
    def failure(self) -> EdgeserveError | None:
        """Why the state is `failed`."""
        return self._failure

    @property
    def pid(self) -> int | None:
        """The worker's process id, for operators and tests."""
        return None if self._worker is None else self._worker.pid

    def stats(self) -> EngineStats:
        """The newest counters; at most a heartbeat old. They start again with each worker."""
        return EngineStats() if self._worker is None else self._worker.stats

    def __len__(self) -> int:
        """Open requests."""
        return len(self._desk)

    # Generator -------------------------------------------------------------------------------

    def next_id(self) -> int:
        return self._desk.next_id()

    async def submit(self, request: GenerationRequest) -> Ticket:
        worker = self._worker
        if self._status.state is not State.READY or worker is None:
            raise refusal(self._status, self._name)
        ticket = self._desk.open(request.id, self._cancel)
        try:
            worker.connection.send(Submit(request))
        except ValueError:  # text that is no UTF-8, or more than a frame holds
            self._desk.forget(request.id)
            raise InvalidRequest("the request cannot be sent to the engine") from None
        return await ticket.admit()

    def _cancel(self, request_id: int) -> None:
        if self._worker is not None:
            self._worker.connection.send(Cancel(request_id))

    def clear_cache(self) -> None:
        """Forget all cached prefixes."""
        if self._worker is not None:
            self._worker.connection.send(ClearCache())

    # Keeping a worker ------------------------------------------------------------------------

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        tries = 0
        while True:
            began = loop.time()
            failure = await self._one_worker()
            if self._status.state is State.STOPPED:
                return
            tries = 0 if loop.time() - began >= self._care.well_s else tries
            # What never ran will not run the next time either.
            if self.info is None or tries >= self._care.restarts:
                self._failure = failure
                self._become(Status(State.FAILED, failure.message))
                return
            pause = min(self._care.first_pause_s * 2**tries, self._care.longest_pause_s)
            tries += 1
            self.restarts += 1
            self._become(Status(State.RESTARTING, failure.message))
            await asyncio.sleep(pause)

    async def _one_worker(self) -> EdgeserveError:
        """Start a worker, let it serve to its end; returns why it ended."""
        try:
            worker = WorkerProcess(
                self._start,
                deliver=self._desk.deliver,
                progress=self._tell,
                heartbeat=self._care.heartbeat,
                loader=self._care.loader,
                log_level=self._care.log_level,
            )
        except OSError as error:
            return EngineUnavailable(f"the worker could not be started ({error.strerror})")
        self._worker = worker
        outcomes: list[asyncio.Future[Any]] = [worker.ready, worker.ended]
        await asyncio.wait(
            outcomes,
            timeout=self._care.startup_timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if worker.ready.done():
            self.info = worker.ready.result()
            self._become(Status(State.READY))
            log.info("worker_ready", pid=worker.pid)
        elif not worker.ended.done():
            worker.kill(f"it was not ready after {self._care.startup_timeout_s:.0f} s")
        reason = await worker.ended
        failure = worker.fault or EngineUnavailable(f"the worker ended: {reason}")
        if self._status.state is not State.STOPPED:
            log.error("worker_ended", pid=worker.pid, reason=failure.message)
            self._become(Status(State.RESTARTING, failure.message))
        self._desk.fail_all(EngineUnavailable(failure.message))
        return failure

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self._status.state in (State.LOADING, State.RESTARTING):
            state, reason = self._status.state, self._status.reason
            self._become(Status(state, reason, stage, done, total))

    def _become(self, status: Status) -> None:
        if self._status.state is not State.STOPPED:
            self._status = status
            self._on_change()

    async def close(self) -> None:
        """Stop the worker. Open requests fail with `ShuttingDown`."""
        self._become(Status(State.STOPPED, "it was stopped"))
        if self._worker is not None and not self._worker.ended.done():
            await self._worker.stop()
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self._desk.fail_all(ShuttingDown())

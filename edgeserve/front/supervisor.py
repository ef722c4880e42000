"""One served model, composed: its checkpoint is found, its replicas started, its doors opened.

`start` returns at once. Health reads `status`; requests go through `generator`, which refuses
with `ModelLoading` until a replica is ready. Belongs to one asyncio loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

import msgspec

from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.config import EngineOptions
from edgeserve.errors import EdgeserveError, InternalError, ShuttingDown
from edgeserve.front.admission import Admission
from edgeserve.front.replica import Care, Replica
from edgeserve.front.router import Router
from edgeserve.front.status import State, Status, refusal
from edgeserve.log import Log
from edgeserve.model_info import ModelInfo
from edgeserve.stats import EngineStats

log = Log("front")

Progress = Callable[[str, int, int], None]
Resolve = Callable[[EngineOptions, Progress], Resolved]


def resolve_checkpoint(options: EngineOptions, progress: Progress) -> Resolved:
    """Find or fetch what the user named. Blocks; runs in a thread."""
    return resolve(
        options.checkpoint,
        cache_dir=options.cache_dir,
        offline=options.offline,
        progress=progress,
    )


async def aside(work: Callable[[], Resolved]) -> Resolved:
    """What `work` returns, from a thread that nobody waits for at exit: downloads take long."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Resolved] = loop.create_future()

    def settle(found: Resolved | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        elif found is not None:
            done.set_result(found)

    def run() -> None:
        found, error = None, None
        try:
            found = work()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            loop.call_soon_threadsafe(settle, found, error)

    threading.Thread(target=run, name="edgeserve-resolve", daemon=True).start()
    return await done


class Supervisor:
    def __init__(
        self,
        options: EngineOptions,
        care: Care = Care(),  # noqa: B008 - immutable
        *,
        resolve: Resolve = resolve_checkpoint,
        on_change: Callable[[Status], None] = lambda _: None,
    ) -> None:
        self._options = options
        self._care = care
        self._resolve = resolve
        self._on_change = on_change
        self._status = Status(State.LOADING)
        self._failure: EdgeserveError | None = None
        self._replicas: list[Replica] = []
        self._settled = asyncio.Event()  # ready for the first time, failed or stopped
        self._starting: asyncio.Task[None] | None = None
        self.admission = Admission(options.max_queued_requests, seats=options.max_batch_size)
        self.generator = Router(self._replicas, self.admission, options, self.refusal)

    def start(self) -> None:
        """Begin. Call on the loop's thread, which must live as long as the workers."""
        self._starting = asyncio.get_running_loop().create_task(self._start())

    # State -----------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        return self._status

    @property
    def info(self) -> ModelInfo | None:
        """The model; None until it has been ready once."""
        return next((r.info for r in self._replicas if r.info is not None), None)

    @property
    def replicas(self) -> tuple[Replica, ...]:
        return tuple(self._replicas)

    def refusal(self) -> EdgeserveError:
        """Why no request is taken now."""
        # Never a whole path: it may be shown to clients.
        return refusal(self._status, self._options.checkpoint.rstrip("/").rpartition("/")[2])

    def stats(self) -> list[EngineStats]:
        """The newest counters of each replica that is up."""
        return [r.stats() for r in self._replicas if r.status.state is State.READY]

    async def ready(self) -> ModelInfo:
        """Wait until requests can be served. Raises why they never will be."""
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure
        info = self.info
        if info is None:
            raise ShuttingDown
        return info

    # Life ------------------------------------------------------------------------------------

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()

        def tell(stage: str, done: int, total: int) -> None:
            status = Status(State.LOADING, "", stage, done, total)
            loop.call_soon_threadsafe(self._become, status)

        try:
            found = await aside(lambda: self._resolve(self._options, tell))
        except EdgeserveError as error:
            self._fail(error)
        except Exception as error:
            log.fault("checkpoint_not_found", error)
            self._fail(InternalError("the checkpoint could not be found or fetched"))
        else:
            options = msgspec.structs.replace(self._options, checkpoint=str(found.path))
            replica = Replica(
                options, found.identity, found.name, self._care, self._replica_changed
            )
            self._replicas.append(replica)
            replica.start()

    def _fail(self, error: EdgeserveError) -> None:
        self._failure = error
        self._become(Status(State.FAILED, error.message))
        self._settled.set()

    def _replica_changed(self) -> None:
        if self._status.state is State.STOPPED:
            return
        states = [replica.status for replica in self._replicas]
        ready = [status for status in states if status.state is State.READY]
        down = [status for status in states if status.state is not State.READY]
        if not ready:
            self._become(down[0])
        elif down:
            self._become(Status(State.DEGRADED, down[0].reason))
        else:
            self._become(ready[0])
        if ready and (info := self.info):
            self.admission.seats = info.limits.seats * len(ready)
            self._settled.set()
        elif all(status.state is State.FAILED for status in states):
            self._failure = self._replicas[0].failure
            self._settled.set()

    def _become(self, status: Status) -> None:
        if self._status.state is not State.STOPPED:
            self._status = status
            self._on_change(status)

    async def drain(self, timeout_s: float) -> bool:
        """Take no new requests and wait for the open ones; whether all have ended in time."""
        self.admission.is_closed = True
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.admission.emptied(), timeout_s)
            return True
        return False

    async def close(self) -> None:
        """Stop all workers. Open requests fail with `ShuttingDown`."""
        self.admission.is_closed = True
        self._become(Status(State.STOPPED, "it was stopped"))
        if self._starting is not None:
            self._starting.cancel()
        await asyncio.gather(*(replica.close() for replica in self._replicas))
        self._settled.set()

"""An engine with its thread: the door through which everything else uses it.

`submit`, `cancel`, `stats` and `close` may be called from any thread; `drain` from one. The thread
takes what is in the inbox, lets the engine have a turn, and sleeps when nothing is to be done.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec

from edgeserve.engine.loop import Engine
from edgeserve.engine.runtime import Runtime
from edgeserve.errors import EdgeserveError, EngineUnavailable, ShuttingDown
from edgeserve.generation import Event, Failed, GenerationRequest
from edgeserve.log import Log
from edgeserve.model_info import ModelInfo
from edgeserve.stats import EngineStats

log = Log("engine")

Command = Callable[[], None]
SENTENCE = re.compile(r"[\w ,.:()-]{1,200}", re.ASCII)  # no path, nothing quoted


class Service:
    def __init__(self, runtime: Runtime) -> None:
        self.info: ModelInfo = runtime.info
        self._runtime = runtime
        self._engine = Engine(runtime)
        self._inbox: deque[Command] = deque()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edgeserve-engine", daemon=True)
        self._engine.on_opened(lambda: self._send(lambda: None))
        self._closing = False
        self._closed = threading.Lock()
        self._progressed = time.monotonic()
        self._failure: EngineUnavailable | None = None
        self._stats = self._engine.stats()

    def start(self) -> None:
        self._thread.start()

    def submit(self, request: GenerationRequest) -> None:
        """Hand a request over. It ends by exactly one `Finished` or `Failed`."""
        arrived = time.monotonic()
        if self._closing:  # nobody may read the inbox any more
            self._engine.outbox.put(Failed(request.id, ShuttingDown().info()))
        else:
            self._send(lambda: self._accept(request, arrived))

    def cancel(self, request_id: int) -> None:
        """End a request before the next step. Harmless when it has ended."""
        self._send(lambda: self._engine.cancel(request_id))

    def clear_cache(self) -> None:
        """Forget all cached prefixes."""
        self._send(self._engine.clear_cache)

    def fileno(self) -> int:
        """Readable while `drain` would return something."""
        return self._engine.outbox.fileno()

    def drain(self) -> list[Event]:
        """Events since the last call, in order."""
        events = self._engine.outbox.drain()
        if events:
            self._progressed = time.monotonic()
        return events

    def stats(self) -> EngineStats:
        """Counters, as of the engine's last turn."""
        return self._stats

    @property
    def failure(self) -> EngineUnavailable | None:
        """Why the engine runs no more requests; None while it does."""
        return self._failure

    @property
    def stalled_s(self) -> float:
        """Seconds without progress while there is work; 0 when idle."""
        if self._engine.is_idle and not self._inbox:
            return 0.0
        return time.monotonic() - self._progressed

    def close(self) -> None:
        """Stop. Open requests fail with `ShuttingDown`; the model is given back."""
        with self._closed:
            if self._closing:
                return
            self._closing = True
        self._send(lambda: None)
        if self._thread.ident is not None:
            self._thread.join()
        self._take_commands()  # what came while the thread was leaving: refused
        self._runtime.close()

    def _send(self, command: Command) -> None:
        self._inbox.append(command)
        self._wake.set()
        self._engine.interrupt()

    # The engine thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing:
            self._round()
        self._take_commands()
        self._engine.fail_all(ShuttingDown())
        self._engine.close()
        self._publish_stats()

    def _round(self) -> None:
        try:
            self._take_commands()
            if self._engine.is_idle or self._failure:
                self._sleep()
                return
            self._engine.turn()
            self._progressed = time.monotonic()
            if self._engine.is_idle:
                self._engine.check_idle()
            self._publish_stats()
        except Exception as error:
            self._fail(error)

    def _sleep(self) -> None:
        self._publish_stats()
        self._wake.wait()
        self._wake.clear()
        self._progressed = time.monotonic()

    def _take_commands(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _accept(self, request: GenerationRequest, arrived: float) -> None:
        refusal: EdgeserveError | None = ShuttingDown() if self._closing else self._failure
        if refusal is None:
            self._engine.accept(request, arrived)
        else:
            self._engine.outbox.put(Failed(request.id, refusal.info()))

    def _fail(self, error: Exception) -> None:
        """The network or our own code broke: every open request ends, and so does each new one."""
        log.fault("engine_failed", error)
        self._failure = EngineUnavailable(f"the engine failed: {reason_of(error)}")
        self._engine.fail_all(self._failure)
        self._engine.outbox.wake()

    def _publish_stats(self) -> None:
        stats = self._engine.stats()
        self._stats = EngineStats(
            scheduling=msgspec.structs.replace(stats.scheduling),
            cache=msgspec.structs.replace(stats.cache),
        )


def reason_of(error: Exception) -> str:
    """Why, for who asks. A RuntimeError comes from our own code, whose sentences hold numbers at
    most; any other text might quote a path or a prompt, and is left out."""
    if isinstance(error, MemoryError):
        return "memory ran out"
    text = str(error)
    return (
        text if type(error) is RuntimeError and SENTENCE.fullmatch(text) else type(error).__name__
    )

"""An answer on the loop, read by a thread: what stands behind `LLM.generate_stream`.

The call starts at once; its deltas wait in a queue for the reader. `close` waits until the request
has left the engine. The metrics are told once, after that and never while deltas are left to read
(unless the reader closes).
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from edgeserve.errors import Cancelled, EdgeserveError
from edgeserve.pipeline.answer import Answer
from edgeserve.pipeline.call import Call
from edgeserve.pipeline.model import ServedModel
from edgeserve.pipeline.output import CANCELLED, GenerationMetrics, StreamDelta, delta

OnMetrics = Callable[[GenerationMetrics], None]


def _nothing() -> None:
    """Nobody wants to know."""


class Relay:
    """One call: `next` and `close` by its readers, `cancel` by any thread."""

    def __init__(
        self,
        model: ServedModel,
        call: Call,
        loop: asyncio.AbstractEventLoop,
        on_metrics: OnMetrics | None = None,
        on_stop: Callable[[], None] = _nothing,
    ) -> None:
        self._model = model
        self._call = call
        self._loop = loop
        self._on_metrics = on_metrics
        self._on_stop = on_stop  # on the loop, once the request has left the engine
        self._deltas: queue.SimpleQueue[StreamDelta | None] = queue.SimpleQueue()  # None: the end
        self._watch = Stopwatch()
        self._metrics: GenerationMetrics | None = None
        self._error: BaseException | None = None
        self._answer: Answer | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = threading.Event()  # the producer has left the engine
        self._told = threading.Lock()  # taken for good by whoever tells the metrics
        loop.call_soon_threadsafe(self._begin)

    def __iter__(self) -> Relay:
        return self

    def __next__(self) -> StreamDelta:
        item = self._deltas.get()
        if item is not None:
            return item
        self._deltas.put(None)  # the end stays the end
        self._tell()
        if isinstance(self._error, Exception):
            raise self._error
        raise StopIteration

    def cancel(self) -> None:
        """Ask the engine to stop. Harmless after the end, and after the last delta was made."""
        if not self._stopped.is_set():
            with suppress(RuntimeError):  # the loop has closed meanwhile, and everything ended
                self._loop.call_soon_threadsafe(self._stop)

    def close(self) -> None:
        """Wait until the request has left the engine; deltas that nobody read are dropped."""
        self._stopped.wait()
        self._deltas.put(None)
        self._tell()

    # On the loop -----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._produce())
        self._task.add_done_callback(self._finish)

    def _stop(self) -> None:
        if self._answer is not None and not self._watch.complete:
            self._answer.cancel()
        elif self._answer is None and self._task is not None:
            self._task.cancel()  # still waits for its seat

    async def _produce(self) -> None:
        async with await self._model.start(self._call) as answer:
            self._answer = answer
            self._watch.open = answer.choices
            wants = self._call.params.wants_logprobs
            token_bytes = await self._model.load_token_bytes() if wants else []
            async for piece in answer:
                made = delta(answer, piece, answer.prompt_tokens, token_bytes)
                self._watch.note(made)
                self._deltas.put(made)
            self._metrics = GenerationMetrics.from_usage(answer.usage)

    def _finish(self, task: asyncio.Task[None]) -> None:
        error = Cancelled() if task.cancelled() else task.exception()
        if isinstance(error, EdgeserveError) and error.code == Cancelled.code:
            self._deltas.put(StreamDelta(finished=True, finish_reason=CANCELLED))
        else:
            self._error = error
        if self._metrics is None:
            self._metrics = self._watch.metrics(self._answer)
        self._deltas.put(None)
        self._stopped.set()
        self._on_stop()
        self._on_stop, self._task = _nothing, None  # no cycle keeps the model loaded

    def _tell(self) -> None:
        if self._on_metrics is None or not self._told.acquire(blocking=False):
            return
        assert self._metrics is not None
        self._on_metrics(self._metrics)


class Stopwatch:
    """What can be said of a request that ends without the engine's own count."""

    def __init__(self) -> None:
        self.open = 1  # choices without an end
        self._started = time.perf_counter()
        self._first = self._last = self._started
        self._tokens = 0
        self._choices: set[int] = set()

    @property
    def complete(self) -> bool:
        """Every choice has ended; cancelling now would only spoil the count."""
        return self.open == 0

    def note(self, made: StreamDelta) -> None:
        self.open -= made.finished
        if made.token_ids:
            self._last = time.perf_counter()
            if not self._tokens:
                self._first = self._last
            self._tokens += len(made.token_ids)
            self._choices.add(made.index)

    def metrics(self, answer: Answer | None) -> GenerationMetrics:
        decoded = self._tokens - len(self._choices)
        return GenerationMetrics(
            generated_tokens=self._tokens,
            decoded_tokens=decoded,
            generation_time=self._last - self._first if decoded else 0.0,
            prompt_tokens=answer.prompt_tokens if answer else 0,
            cached_tokens=answer.cached_tokens if answer else 0,
            time_to_first_token_s=self._first - self._started,
            total_s=time.perf_counter() - self._started,
            cancelled=True,
        )

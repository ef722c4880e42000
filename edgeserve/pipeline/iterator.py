"""`CancellableIterator`: a generator that can be stopped from outside while it runs.

`cancel()` only asks: it may be called from any thread, also while another one waits in `next()`,
which then wakes. `close()` asks, waits for whoever is in `next()`, and closes the generator, whose
own clean-up waits for what it reads from. After a clean end neither asks anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, Protocol, TypeVar

Item_co = TypeVar("Item_co", covariant=True)
Item = TypeVar("Item")


class Closable(Protocol[Item_co]):
    """What a generator has in common with the engine's own streams."""

    def __next__(self) -> Item_co: ...

    def close(self) -> None: ...


class CancellableIterator(Generic[Item]):
    """Iterates `generator`; `cancel` is called at most once, and never after a clean end.

    To wrap the deltas of a stream in a generator of one's own, give `source.cancel` as `cancel`
    and close the source in the generator's `finally`.
    """

    def __init__(self, generator: Closable[Item], cancel: Callable[[], None]) -> None:
        self._generator = generator
        self._cancel = cancel
        self._reading = threading.RLock()  # held in next(); re-entered by a callback of ours
        self._state = threading.Lock()
        self._inside = False
        self._ended = False
        self._cancelled = False

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        with self._reading:
            if self._ended or self._inside:
                raise StopIteration
            self._inside = True
            try:
                return next(self._generator)
            except (StopIteration, Exception):
                self._ended = True
                raise
            finally:
                self._inside = False

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled it before its end."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the source to stop; what it made so far may still be read."""
        with self._state:
            if self._ended or self._cancelled:
                return
            self._cancelled = True
        self._cancel()

    def close(self) -> None:
        """Cancel, wait for the thread in `next()`, close the generator. Harmless when repeated."""
        self.cancel()
        with self._reading:
            if not self._inside:  # else: called by the generator itself, which is about to end
                self._ended = True
                self._generator.close()

    def __del__(self) -> None:
        self.cancel()  # dropped unread: nobody waits for the rest

    def __enter__(self) -> CancellableIterator[Item]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

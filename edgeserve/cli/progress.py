"""Shows downloads and packing: bars on a terminal, otherwise a line per stage.

A reporter is called as `progress(stage, done, total)` with bytes, often and from any thread.
Everything goes to stderr, so that stdout carries results only.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from edgeserve.cli.number import human_bytes

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Reporter(Protocol):
    def __call__(self, stage: str, done: int, total: int) -> None: ...

    def close(self) -> None:
        """The end: calls that still come are ignored."""


class Lines:
    """One line when a stage starts and one when it ends, with its size and time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started: dict[str, float] = {}
        self._ended: set[str] = set()
        self._is_open = True
        self._lock = threading.Lock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        with self._lock:
            if not self._is_open:
                return
            if stage not in self._started:
                self._started[stage] = time.monotonic()
                self._say(f"{stage} ({human_bytes(total)})" if total else stage)
            if total and done >= total and stage not in self._ended:
                self._ended.add(stage)
                self._say(f"{stage}: done in {time.monotonic() - self._started[stage]:.1f} s")

    def close(self) -> None:
        with self._lock:
            self._is_open = False

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Bars:
    """A bar per stage, drawn from the first one on."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._is_open = True
        self._lock = threading.Lock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        with self._lock:
            if not self._is_open:
                return
            if stage not in self._tasks:
                if not self._tasks:
                    self._bars.start()
                self._tasks[stage] = self._bars.add_task(stage, total=total or None)
            self._bars.update(self._tasks[stage], completed=done, total=total or None)

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._bars.stop()


@contextmanager
def reporter(stream: TextIO | None = None) -> Iterator[Reporter]:
    """Bars when the stream is a terminal, lines otherwise; closed at the end of the block."""
    stream = stream or sys.stderr
    reporter: Reporter = Bars(_bars(stream)) if stream.isatty() else Lines(stream)
    try:
        yield reporter
    finally:
        reporter.close()


def _bars(stream: TextIO) -> RichProgress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(file=stream),
    )

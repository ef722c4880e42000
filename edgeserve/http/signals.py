"""SIGTERM and SIGINT of `edgeserve serve`, from its first moment to its last."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Catches both while it is entered; those that come before `pass_to` are kept for it.

    Afterwards they are ignored: the process is about to end, with an exit code that a late one
    shall not change.
    """

    def __init__(self) -> None:
        self._early = 0
        self._stop: Callable[[], None] | None = None

    def __enter__(self) -> Signals:
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number in SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def pass_to(self, stop: Callable[[], None]) -> None:
        """Call `stop` for each signal, also for those that have come."""
        self._stop = stop
        for _ in range(self._early):
            stop()

    def _came(self) -> None:
        if self._stop is None:
            self._early += 1
        else:
            self._stop()

"""An asyncio loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs until `stop`. The thread is a daemon: it never keeps a process alive."""

    def __init__(self, name: str) -> None:
        self._process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    @property
    def is_here(self) -> bool:
        """Whether this is the process that started it: threads do not follow a fork."""
        return os.getpid() == self._process

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`, from another thread. Leaving early (Ctrl-C) cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, then end loop and thread. In the thread itself (where the last reference to
        something may fall) it only arranges for that; in a fork there is nothing to end."""
        if not self.is_here:
            work.close()
            return
        if threading.current_thread() is self._thread:
            task = self.loop.create_task(work)
            task.add_done_callback(lambda _: self.loop.stop())
            return
        try:
            self.run(work)
        finally:
            self.stop()

    def stop(self) -> None:
        """End the loop and its thread, from another thread. Harmless when repeated."""
        with suppress(RuntimeError):  # closed already
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

"""`edgeserve serve` as a process of its own, for tests from the outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY_S = 120.0


class Server:
    """A running `edgeserve serve`; its stderr so far is `said`."""

    def __init__(self, *argv: str, cache: Path) -> None:
        self.said: list[str] = []
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edgeserve", "serve", "--port", "0", *argv],
            env=os.environ | {"EDGESERVE_CACHE": str(cache), "EDGESERVE_THREADS": "2"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            if line.lstrip().startswith("curl "):
                self._ready.set()
        self._ready.set()

    def wait_ready(self) -> None:
        assert self._ready.wait(READY_S), self.said
        assert self.curl, self.said

    @property
    def url(self) -> str:
        return self.curl.split()[1].partition("/v1/")[0]

    @property
    def curl(self) -> str:
        lines = [line.strip() for line in self.said if line.lstrip().startswith("curl ")]
        return lines[-1] if lines else ""

    def wait_said(self) -> None:
        """Until all that an ended process said has been read."""
        self._reader.join(5)

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        self.wait_said()
        return code


@contextmanager
def serving(*argv: str, cache: Path) -> Iterator[Server]:
    server = Server(*argv, cache=cache)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()

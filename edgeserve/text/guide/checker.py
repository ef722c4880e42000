"""Proves that a grammar compiles and starts, within a deadline, before a request is admitted.

The work runs in child processes of its own (started when first needed): a grammar that never
comes back, or takes all memory, costs its child and nothing else. Answers are cached. Any thread
may call `check`; it blocks for at most the deadline and the wait for a free child.
"""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path

from edgeserve.errors import Busy
from edgeserve.guide import FUEL

CHILD = Path(__file__).with_name("checker_process.py")
DEADLINE_S = 0.7
START_S = 20.0  # for a child to start on a busy machine, once
WAIT_S = 10.0  # for a free child
MEMORY_BYTES = 2 * 1024**3
CACHED = 1024
CACHED_BYTES = 16 * 1024**2
HELLO = '{"grammars":[{"lark_grammar":"start: \\"a\\""}]}'
TOO_SLOW = "it takes too long to compile"


class Checker:
    """`close` ends the children; an interpreter that exits ends them too."""

    def __init__(self, *, children: int = 2, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._free: queue.LifoQueue[_Child] = queue.LifoQueue()
        self._children = [_Child() for _ in range(children)]
        for child in self._children:
            self._free.put(child)
        self._lock = threading.Lock()
        self._known: OrderedDict[str, str] = OrderedDict()
        self._known_bytes = 0

    def check(self, grammar: str) -> str:
        """Why the grammar cannot be used; empty when it can. Raises Busy."""
        with self._lock:
            if (known := self._known.get(grammar)) is not None:
                self._known.move_to_end(grammar)
                return known
        try:
            child = self._free.get(timeout=WAIT_S)
        except queue.Empty:
            raise Busy("too many grammars are being checked; try again") from None
        try:
            answer = child.ask(grammar, self._deadline_s)
        finally:
            self._free.put(child)
        self._remember(grammar, answer)
        return answer

    def close(self) -> None:
        for child in self._children:
            child.stop()

    def _remember(self, grammar: str, answer: str) -> None:
        with self._lock:
            if grammar not in self._known:
                self._known_bytes += len(grammar)
            self._known[grammar] = answer
            while len(self._known) > CACHED or self._known_bytes > CACHED_BYTES:
                self._known_bytes -= len(self._known.popitem(last=False)[0])


class _Child:
    """One process at a time; used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def ask(self, grammar: str, deadline_s: float) -> str:
        if self._process is None or self._process.poll() is not None:
            self._start()
        if not self._is_ready:
            self._is_ready = self._exchange(HELLO, START_S) is not None
        answer = self._exchange(grammar, deadline_s)
        if answer is None:
            self._start()  # the next one need not wait for it
            return TOO_SLOW
        return answer

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _start(self) -> None:
        self.stop()
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD), str(MEMORY_BYTES), json.dumps(FUEL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RAYON_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        self._is_ready = False

    def _exchange(self, grammar: str, timeout_s: float) -> str | None:
        """The child's answer; None when there is none in time, or the child died."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        until = time.monotonic() + timeout_s
        try:
            process.stdin.write(json.dumps(grammar).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return None
        line = b""
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                return None
            part = os.read(process.stdout.fileno(), 65536)
            if not part:
                return None
            line += part
        answer = json.loads(line)
        return answer if isinstance(answer, str) else None

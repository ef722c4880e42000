"""A signal ends `edgeserve serve` with exit code 0 and without a word, whenever it comes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.faults.watched import is_alive
from tests.serving import Server, serving


def worker_of(server: Server) -> int:
    """The process id of the worker, as soon as there is one."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    while not (found := children.read_text().split()):
        assert server.process.poll() is None, server.said
        time.sleep(0.002)
    return int(found[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_moment_the_worker_is_there(
    number: signal.Signals, scripted_checkpoint: Path, wire_cache: Path
) -> None:
    """The front still imports what it needs for HTTP."""
    with serving(str(scripted_checkpoint), cache=wire_cache) as server:
        worker = worker_of(server)
        assert server.stop(number) == 0
        assert not [line for line in server.said if "Traceback" in line or "level=error" in line]
        assert not is_alive(worker)


def test_any_number_while_it_ends(scripted_checkpoint: Path, wire_cache: Path) -> None:
    with serving(str(scripted_checkpoint), cache=wire_cache) as server:
        server.wait_ready()
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        server.wait_said()
        assert server.process.returncode == 0
        assert not [line for line in server.said if "Traceback" in line]

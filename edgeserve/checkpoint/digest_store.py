"""Remembers digests of files, so that a second start reads no weights.

A digest is trusted while device, inode, size, mtime and ctime are what they were. A change made in
the same clock tick as the reading would be missed, so a file is left to rest before it is read.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from edgeserve.checkpoint.digest import digest_file
from edgeserve.errors import CheckpointError

# progress(stage, done, total) in bytes
Progress = Callable[[str, int, int], None]

_FILE = "digests.json"
_ENTRIES = 4096
_REST_NS = 50_000_000  # longer than a tick of any file system's clock


class DigestStore:
    """One small file of the cache. Losing it, or a race between writers, costs a reading only."""

    def __init__(
        self, cache_dir: Path, *, verify: bool = False, progress: Progress | None = None
    ) -> None:
        self._path = cache_dir.expanduser() / _FILE
        self._verify = verify
        self._progress = progress
        self._entries: dict[str, list[int | str]] | None = None

    def digest(self, path: Path) -> str:
        """sha256 of the file; read only when it is not remembered or `verify` was asked."""
        entries = self._load()
        before = _state(path)
        known = entries.get(before[0])
        if isinstance(known, list) and known[:-1] == before[1] and not self._verify:
            return str(known[-1])
        time.sleep(max(0, _REST_NS - (time.time_ns() - before[1][2])) / 1e9)
        digest = digest_file(path, self._advance(before[1][0]))
        if _state(path) != before:
            raise CheckpointError(f"{path.name} changed while it was read; start again")
        self._remember(before[0], [*before[1], digest])
        return digest

    def _advance(self, size: int) -> Callable[[int], None] | None:
        progress, done = self._progress, 0
        if progress is None:
            return None

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress("digest", done, size)

        return advance

    def _load(self) -> dict[str, list[int | str]]:
        if self._entries is None:
            try:
                found = json.loads(self._path.read_text("utf-8"))
                good = isinstance(found, dict)
            except (OSError, ValueError):
                good = False
            self._entries = found if good else {}
        return self._entries

    def _remember(self, key: str, entry: list[int | str]) -> None:
        self._entries = None
        entries = self._load()  # others may have written meanwhile
        entries.pop(key, None)
        entries[key] = entry
        for old in list(entries)[:-_ENTRIES]:
            del entries[old]
        temporary = self._path.with_name(f"{_FILE}.{secrets.token_hex(4)}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(entries), "utf-8")
            temporary.replace(self._path)
        except OSError:  # a cache that cannot be written only costs time
            with suppress(OSError):
                temporary.unlink()


def _state(path: Path) -> tuple[str, list[int]]:
    try:
        stat = os.stat(path)
    except OSError as error:
        raise CheckpointError(f"cannot read {path.name}: {error.strerror}") from None
    newest = max(stat.st_ctime_ns, 0)
    return f"{stat.st_dev}:{stat.st_ino}", [stat.st_size, stat.st_mtime_ns, newest]

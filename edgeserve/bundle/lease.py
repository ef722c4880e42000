"""Marks a bundle as served, so that no process removes it meanwhile.

A lease is a shared lock on the bundle's manifest, held by an open file: it ends with the process,
however that ends. Works on bundles that cannot be written to.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from edgeserve.bundle.manifest import MANIFEST


class Lease:
    """Held until `close`, or until the process is gone."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def take(folder: Path) -> Lease | None:
    """A lease on the bundle; None when it is gone or goes at this moment."""
    try:
        handle = os.open(folder / MANIFEST, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        if not _same(handle, folder / MANIFEST):  # removed between the two lines above
            os.close(handle)
            return None
    except OSError:
        pass  # a file system without locks: served all the same, and never pruned by us there
    return Lease(handle)


def is_leased(folder: Path) -> bool:
    """Whether some process serves the bundle."""
    handle = _try_exclusive(folder)
    if handle is None:
        return (folder / MANIFEST).exists()
    os.close(handle)
    return False


def remove_unless_leased(folder: Path) -> bool:
    """Remove the bundle if nobody serves it. No lease can begin while it goes."""
    from edgeserve.checkpoint.staging import remove

    handle = _try_exclusive(folder)
    if handle is None:
        return False
    try:
        remove(folder)
    finally:
        os.close(handle)
    return True


def _try_exclusive(folder: Path) -> int | None:
    try:
        handle = os.open(folder / MANIFEST, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _same(handle: int, path: Path) -> bool:
    try:
        there = os.stat(path)
    except OSError:
        return False
    here = os.fstat(handle)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)

"""Reports the bytes that arrive in a folder while another library or process downloads to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeserve.checkpoint.resolve import Progress

_POLL_S = 0.1


@contextmanager
def watched(folder: Path, total: int, progress: Progress) -> Iterator[None]:
    """While the block runs, `progress` is called from a thread of its own. `total` 0: unknown."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_POLL_S):
            progress("download", bytes_below(folder, total), total)

    thread = threading.Thread(target=watch, name="arrival", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress("download", bytes_below(folder, total), total)


def bytes_below(folder: Path, limit: int) -> int:
    """Bytes of all files, at most `limit`: a file is there twice while it is moved."""
    total = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                total += path.stat().st_size
        except OSError:  # gone meanwhile: downloads move and remove their files
            continue
    return min(total, limit) if limit else total

"""sha256 over the bytes of a checkpoint's files, whatever folder they lie in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from edgeserve.errors import CheckpointError

DigestOne = Callable[[Path], str]  # the sha256 of one file, read now or remembered

_CHUNK = 1 << 22


def digest_file(path: Path, advance: Callable[[int], None] | None = None) -> str:
    """sha256 of one file; `advance` gets the bytes read, chunk by chunk."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                if advance is not None:
                    advance(len(chunk))
    except OSError as error:
        raise CheckpointError(f"cannot read {path.name}: {error.strerror}") from None
    return digest.hexdigest()


def digest_files(files: Iterable[tuple[str, Path]], digest_one: DigestOne = digest_file) -> str:
    """One sha256 for named files: over names and the files' own digests, in name order."""
    total = hashlib.sha256()
    for name, path in sorted(files):
        total.update(f"{name}\0{digest_one(path)}\n".encode())
    return total.hexdigest()

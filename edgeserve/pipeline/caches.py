"""Emptying the cache of bundles from Python."""

from __future__ import annotations

from pathlib import Path

from edgeserve.config import EngineOptions


def clear_engine_cache(cache_dir: str | Path | None = None) -> int:
    """Remove all bundles that nobody serves; downloads stay. Returns how many."""
    from edgeserve.bundle import cache

    return len(cache.clear(_folder(cache_dir)))


def prune_engine_cache(
    cache_dir: str | Path | None = None,
    max_size_bytes: int = EngineOptions(checkpoint="").cache_max_bytes,
    keep: str | Path | None = None,
) -> int:
    """Remove the least recently used bundles until the rest fits; never one that is served, nor
    `keep`. Returns how many."""
    from edgeserve.bundle import cache

    if isinstance(max_size_bytes, bool) or max_size_bytes < 1:
        raise ValueError("max_size_bytes must be an integer of at least 1")
    kept = None if keep is None else Path(keep)
    return len(cache.prune(_folder(cache_dir), max_size_bytes, keep=kept))


def _folder(given: str | Path | None) -> Path:
    return Path(given or EngineOptions(checkpoint="").cache_dir).expanduser()

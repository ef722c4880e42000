"""From a resolved source to one read-only view of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edgeserve.checkpoint.digest import digest_file
from edgeserve.checkpoint.digest_store import DigestStore
from edgeserve.checkpoint.gguf import GgufCheckpoint
from edgeserve.checkpoint.gguf_file import read_architecture
from edgeserve.checkpoint.resolve import Progress, Resolved
from edgeserve.checkpoint.safetensors import FolderCheckpoint
from edgeserve.checkpoint.view import Checkpoint


def open_checkpoint(
    resolved: Resolved,
    *,
    cache_dir: Path | None = None,
    verify: bool = False,
    progress: Progress | None = None,
) -> Checkpoint:
    """The view of a folder, a GGUF or a bundle. Digests of files are remembered in `cache_dir`,
    read again when `verify` is set."""
    digest_one: Callable[[Path], str] = digest_file
    if cache_dir is not None:
        digest_one = DigestStore(cache_dir, verify=verify, progress=progress).digest
    if resolved.kind == "bundle":
        from edgeserve.bundle.view import BundleCheckpoint

        return BundleCheckpoint(resolved.path)
    if resolved.kind == "folder":
        return FolderCheckpoint(resolved.path, resolved.identity, digest_one)
    from edgeserve.family.discover import load_gguf

    architecture = read_architecture(resolved.path)
    mapping = load_gguf(architecture).gguf[architecture]
    return GgufCheckpoint(resolved.path, mapping, resolved.identity, digest_one)

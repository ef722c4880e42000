"""From a resolved source to one read-only view of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edgeserve.checkpoint.digest import digest_file
from edgeserve.checkpoint.gguf import GgufCheckpoint
from edgeserve.checkpoint.gguf_file import read_architecture
from edgeserve.checkpoint.resolve import Resolved
from edgeserve.checkpoint.safetensors import FolderCheckpoint
from edgeserve.checkpoint.view import Checkpoint


def open_checkpoint(
    resolved: Resolved, digest_one: Callable[[Path], str] = digest_file
) -> Checkpoint:
    """The view of a folder, a GGUF or a bundle. `digest_one` may remember digests of files."""
    if resolved.kind == "bundle":
        from edgeserve.bundle.view import BundleCheckpoint

        return BundleCheckpoint(resolved.path)
    if resolved.kind == "folder":
        return FolderCheckpoint(resolved.path, resolved.identity, digest_one)
    from edgeserve.family.discover import load_gguf

    architecture = read_architecture(resolved.path)
    mapping = load_gguf(architecture).gguf[architecture]
    return GgufCheckpoint(resolved.path, mapping, resolved.identity, digest_one)

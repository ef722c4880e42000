"""From a resolved source to one read-only view of it."""

from __future__ import annotations

from edgeserve.checkpoint.gguf import GgufCheckpoint
from edgeserve.checkpoint.gguf_file import read_architecture
from edgeserve.checkpoint.resolve import Resolved
from edgeserve.checkpoint.safetensors import FolderCheckpoint
from edgeserve.checkpoint.view import Checkpoint


def open_checkpoint(resolved: Resolved) -> Checkpoint:
    """The view of a folder, a GGUF or a bundle."""
    if resolved.kind == "bundle":
        from edgeserve.bundle.view import BundleCheckpoint

        return BundleCheckpoint(resolved.path)
    if resolved.kind == "folder":
        return FolderCheckpoint(resolved.path, resolved.identity)
    from edgeserve.family.discover import load_gguf

    architecture = read_architecture(resolved.path)
    mapping = load_gguf(architecture).gguf[architecture]
    return GgufCheckpoint(resolved.path, mapping, resolved.identity)

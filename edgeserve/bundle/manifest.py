"""What a bundle says about itself: `manifest.json`, typed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from edgeserve.errors import BundleError

FORMAT = 1
MANIFEST = "manifest.json"
COMPONENTS = "components"
TEXT = "text"  # the component of a language model


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a component."""

    size: int
    sha256: str


class Component(msgspec.Struct, frozen=True):
    """One folder of the bundle: what the backend says of its layout, and all files."""

    layout: dict[str, Any]
    files: dict[str, FileEntry]


class FamilyEntry(msgspec.Struct, frozen=True):
    name: str
    contract: int
    version: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a bundle depends on and holds."""

    format: int
    key: str  # sha256 over all that the bytes depend on
    version: str  # of edgeserve that built it
    created: float = msgspec.field(default_factory=time.time)  # seconds since 1970
    identity: str  # of the checkpoint, as the user sees it
    name: str  # to serve it under
    model_type: str
    checkpoint_digest: str
    family: FamilyEntry
    backend: str
    backend_key: dict[str, Any]
    components: dict[str, Component]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(f.size for part in self.components.values() for f in part.files.values())


class _Format(msgspec.Struct):
    format: int


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a bundle folder; `BundleError` when there is no usable one."""
    try:
        raw = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise BundleError(
            f"bundle '{folder.name}' has no readable manifest ({error.strerror}); build it again"
        ) from None
    try:
        found = msgspec.json.decode(raw, type=_Format).format
        if found != FORMAT:
            raise BundleError(
                f"bundle '{folder.name}' has format {found} and this version reads {FORMAT}; "
                "build it again from its checkpoint"
            )
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BundleError(f"bundle '{folder.name}' has a damaged manifest: {error}") from None
    _check_names(folder, manifest)
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def _check_names(folder: Path, manifest: Manifest) -> None:
    """A manifest may come from elsewhere: its names stay inside the folder."""
    for part, component in manifest.components.items():
        for name in (part, *component.files):
            if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
                raise BundleError(f"bundle '{folder.name}' names a file outside itself")

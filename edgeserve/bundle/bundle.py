"""An open bundle: its manifest, its folders, and the lease that keeps it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeserve.backends.contract import Backend
from edgeserve.bundle import lease
from edgeserve.bundle.key import backend_key
from edgeserve.bundle.manifest import COMPONENTS, TEXT, Manifest, read_manifest
from edgeserve.bundle.view import BundleCheckpoint
from edgeserve.checkpoint.digest import digest_file
from edgeserve.config import EngineOptions
from edgeserve.errors import BundleError
from edgeserve.family.contract import CONTRACT, Family


@dataclass(frozen=True, slots=True)
class Bundle:
    """A complete bundle that nobody removes until `close`."""

    path: Path
    manifest: Manifest
    lease: lease.Lease

    @property
    def checkpoint(self) -> BundleCheckpoint:
        """What families read instead of the checkpoint."""
        return BundleCheckpoint(self.path, self.manifest)

    @property
    def packed_bytes(self) -> int:
        """Size of all its files."""
        return self.manifest.bytes

    def component(self, name: str = TEXT) -> Path:
        """The folder of a component."""
        return self.path / COMPONENTS / name

    def layout(self, name: str = TEXT) -> dict[str, Any]:
        """What the backend said of the component when it packed it."""
        return self.manifest.components[name].layout

    def close(self) -> None:
        self.lease.close()


def open_bundle(folder: Path, *, verify: bool = False) -> Bundle:
    """Open and lease a bundle; every file must be there whole. `verify` reads every byte."""
    taken = lease.take(folder)
    if taken is None:
        raise BundleError(f"'{folder.name}' is not a bundle; build one with 'edgeserve build'")
    try:
        manifest = read_manifest(folder)
        check_files(folder, manifest, verify=verify)
    except BaseException:
        taken.close()
        raise
    return Bundle(folder, manifest, taken)


def check_files(folder: Path, manifest: Manifest, *, verify: bool) -> None:
    """Refuse a bundle with a missing, cut or, when verifying, changed file."""
    if TEXT not in manifest.components:
        raise BundleError(f"bundle '{folder.name}' has no '{TEXT}' component; build it again")
    for part, component in manifest.components.items():
        for name, entry in component.files.items():
            path = folder / COMPONENTS / part / name
            size = path.stat().st_size if path.is_file() else None
            if size != entry.size:
                raise BundleError(
                    f"bundle '{folder.name}' is damaged: {name} has {size or 0} of {entry.size} "
                    "bytes; build it again"
                )
            if verify and digest_file(path) != entry.sha256:
                raise BundleError(
                    f"bundle '{folder.name}' is damaged: {name} does not have its sha256; build "
                    "it again"
                )


def check_target(bundle: Bundle, family: Family, backend: Backend, options: EngineOptions) -> None:
    """Refuse a bundle that was built for something else than what is asked."""
    manifest, name = bundle.manifest, bundle.path.name
    if manifest.backend != backend.name:
        raise BundleError(
            f"bundle '{name}' was built for backend '{manifest.backend}', not '{backend.name}'; "
            f"start with --backend {manifest.backend}, or build it again"
        )
    if (manifest.family.name, manifest.family.contract) != (family.name, CONTRACT):
        raise BundleError(
            f"bundle '{name}' was built with family '{manifest.family.name}' of contract "
            f"{manifest.family.contract}, and this is '{family.name}' of contract {CONTRACT}; "
            "build it again"
        )
    wanted = backend_key(backend, options)
    if manifest.backend_key != wanted:
        raise BundleError(
            f"bundle '{name}' was built for other settings ("
            f"{_differences(manifest.backend_key, wanted)}); build it again with the ones wanted"
        )


def touch(folder: Path) -> None:
    """Mark as used now: the clock of what is pruned first."""
    try:
        os.utime(folder)
    except OSError:  # a bundle that cannot be written to
        return


def _differences(built: dict[str, Any], wanted: dict[str, Any]) -> str:
    names = sorted({*built, *wanted})
    return ", ".join(
        f"{name}: {built.get(name)}, wanted {wanted.get(name)}"
        for name in names
        if built.get(name) != wanted.get(name)
    )

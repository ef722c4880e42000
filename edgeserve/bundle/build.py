"""Packs a checkpoint into a bundle folder, whole or not at all."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeserve.backends.contract import Backend, Progress
from edgeserve.bundle.key import backend_key, family_entry, own_version
from edgeserve.bundle.manifest import (
    COMPONENTS,
    FORMAT,
    TEXT,
    Component,
    FileEntry,
    Manifest,
    write_manifest,
)
from edgeserve.bundle.view import write_view
from edgeserve.checkpoint.digest import digest_file
from edgeserve.checkpoint.formats import ggml
from edgeserve.checkpoint.staging import publish, scratch
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions
from edgeserve.errors import BundleError
from edgeserve.family.contract import Family, GraphOptions

Info = Callable[[str], None]  # one sentence for the user


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that a bundle is made from."""

    checkpoint: Checkpoint
    digest: str  # of the checkpoint
    key: str
    family: Family
    backend: Backend
    options: EngineOptions
    name: str  # to serve it under


def build(recipe: Recipe, target: Path, progress: Progress, info: Info | None = None) -> None:
    """Build a bundle and publish it as `target`. The caller holds the lock of `target`."""
    checkpoint = recipe.checkpoint
    try:
        with scratch(target) as work:
            _state_cost(recipe, work, info)
            folder = work / COMPONENTS / TEXT
            folder.mkdir(parents=True)
            component = _pack(recipe, folder, progress)
            manifest = Manifest(
                format=FORMAT,
                key=recipe.key,
                version=own_version(),
                identity=checkpoint.identity,
                name=recipe.name,
                model_type=checkpoint.model_type,
                checkpoint_digest=recipe.digest,
                family=family_entry(recipe.family, checkpoint.model_type),
                backend=recipe.backend.name,
                backend_key=backend_key(recipe.backend, recipe.options),
                components={TEXT: component},
            )
            write_manifest(work, manifest)
            publish(work, target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BundleError(
                "the disk is full while packing; free some space ('edgeserve cache prune'), or "
                "choose another --cache-dir"
            ) from None
        raise BundleError(f"the bundle cannot be written: {error.strerror or error}") from None


def _pack(recipe: Recipe, folder: Path, progress: Progress) -> Component:
    checkpoint, family, options = recipe.checkpoint, recipe.family, recipe.options
    write_view(checkpoint, folder)
    length = options.max_model_len or family.spec(checkpoint).context
    graph = family.graph(checkpoint, GraphOptions(max_model_len=length))
    layout = recipe.backend.pack(graph, checkpoint, options, folder, progress)
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    total = sum(path.stat().st_size for path in paths)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("seal", done, total)

    files = {p.name: FileEntry(p.stat().st_size, digest_file(p, advance)) for p in paths}
    return Component(layout, files)


def _state_cost(recipe: Recipe, folder: Path, info: Info | None) -> None:
    """Say what packing takes before it begins, and refuse what cannot fit."""
    checkpoint = recipe.checkpoint
    need = sum(_stored_bytes(t.shape, t.format) for t in checkpoint.tensors().values())
    free = shutil.disk_usage(folder).free
    if need > free:
        raise BundleError(
            f"packing {checkpoint.identity} takes about {need >> 20} MiB of disk and {free >> 20} "
            "MiB are free; free some space ('edgeserve cache prune'), or choose another --cache-dir"
        )
    if info is not None:
        info(
            f"packing {checkpoint.identity} for {recipe.backend.name} takes about {need >> 20} MiB "
            f"of disk, {free >> 20} MiB are free"
        )


def _stored_bytes(shape: tuple[int, ...], kind: str) -> int:
    count = 1
    for extent in shape:
        count *= extent
    try:
        values, size = ggml.block_size(kind)
    except KeyError:  # a format that GGUF does not have
        return count
    return count // values * size

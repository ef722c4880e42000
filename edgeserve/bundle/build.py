"""Finds the bundle of a checkpoint in the cache, or builds it once, whatever processes want it."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from edgeserve.backends.contract import Backend, Progress
from edgeserve.bundle import cache
from edgeserve.bundle.bundle import Bundle, check_target, open_bundle, touch
from edgeserve.bundle.key import backend_key, bundle_key, family_entry, own_version
from edgeserve.bundle.manifest import (
    COMPONENTS,
    FORMAT,
    TEXT,
    Component,
    FileEntry,
    Manifest,
    write_manifest,
)
from edgeserve.bundle.view import BundleCheckpoint, write_view
from edgeserve.checkpoint.digest import digest_file
from edgeserve.checkpoint.formats import ggml
from edgeserve.checkpoint.staging import locked, publish, scratch
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions
from edgeserve.errors import BundleError
from edgeserve.family.contract import Family, GraphOptions

Info = Callable[[str], None]  # one sentence for the user
_ATTEMPTS = 3  # a bundle may be pruned between its building and its lease
_KEY_DIGITS = 16


def ensure(
    checkpoint: Checkpoint,
    family: Family,
    backend: Backend,
    options: EngineOptions,
    progress: Progress,
    *,
    info: Info | None = None,
    name: str | None = None,
) -> Bundle:
    """The leased bundle of a checkpoint, from the cache or built now. `name` is the one to serve
    it under. A checkpoint that is itself a bundle is checked against what is asked."""
    if isinstance(checkpoint, BundleCheckpoint):
        return _given(checkpoint, family, backend, options)
    key = bundle_key(checkpoint, family, backend, options)
    served = name or Path(checkpoint.identity).name
    target = cache.bundles(options.cache_dir) / f"{_slug(served)}-{key[:_KEY_DIGITS]}"
    for _ in range(_ATTEMPTS):
        found = _cached(target, key, verify=options.verify)
        if found is not None:
            touch(target)
            return found
        with locked(target, lambda: progress("wait for another build", 0, 0)):
            if _cached_key(target, key, verify=options.verify):
                continue
            build(checkpoint, family, backend, options, target, progress, info=info, name=served)
        cache.prune(options.cache_dir, options.cache_max_bytes, keep=target)
    raise BundleError(f"bundle '{target.name}' is removed as soon as it is built; try again")


def build(
    checkpoint: Checkpoint,
    family: Family,
    backend: Backend,
    options: EngineOptions,
    target: Path,
    progress: Progress,
    *,
    info: Info | None = None,
    name: str | None = None,
) -> None:
    """Build a bundle and publish it as `target`, whole or not at all. The caller holds the lock of
    `target`."""
    key = bundle_key(checkpoint, family, backend, options)
    try:
        with scratch(target) as work:
            _state_cost(checkpoint, backend, work, info)
            folder = work / COMPONENTS / TEXT
            folder.mkdir(parents=True)
            component = _pack(checkpoint, family, backend, options, folder, progress)
            manifest = Manifest(
                format=FORMAT,
                key=key,
                version=own_version(),
                identity=checkpoint.identity,
                name=name or Path(checkpoint.identity).name,
                model_type=checkpoint.model_type,
                checkpoint_digest=checkpoint.digest(),
                family=family_entry(family),
                backend=backend.name,
                backend_key=backend_key(backend, options),
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


def _given(
    checkpoint: BundleCheckpoint, family: Family, backend: Backend, options: EngineOptions
) -> Bundle:
    bundle = open_bundle(checkpoint.path, verify=options.verify)
    try:
        check_target(bundle, family, backend, options)
    except BaseException:
        bundle.close()
        raise
    touch(bundle.path)
    return bundle


def _cached(target: Path, key: str, *, verify: bool) -> Bundle | None:
    """The bundle if it is there and whole. A damaged one is built again, so it is no error."""
    try:
        bundle = open_bundle(target, verify=verify)
    except BundleError:
        return None
    if bundle.manifest.key != key:
        bundle.close()
        return None
    return bundle


def _cached_key(target: Path, key: str, *, verify: bool) -> bool:
    bundle = _cached(target, key, verify=verify)
    if bundle is not None:
        bundle.close()
    return bundle is not None


def _pack(
    checkpoint: Checkpoint,
    family: Family,
    backend: Backend,
    options: EngineOptions,
    folder: Path,
    progress: Progress,
) -> Component:
    write_view(checkpoint, folder)
    length = options.max_model_len or family.spec(checkpoint).context
    graph = family.graph(checkpoint, GraphOptions(max_model_len=length))
    layout = backend.pack(graph, checkpoint, options, folder, progress)
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    total = sum(path.stat().st_size for path in paths)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("seal", done, total)

    files = {p.name: FileEntry(p.stat().st_size, digest_file(p, advance)) for p in paths}
    return Component(layout, files)


def _state_cost(checkpoint: Checkpoint, backend: Backend, folder: Path, info: Info | None) -> None:
    """Say what packing takes before it begins, and refuse what cannot fit."""
    need = sum(_stored_bytes(t.shape, t.format) for t in checkpoint.tensors().values())
    free = shutil.disk_usage(folder).free
    if need > free:
        raise BundleError(
            f"packing {checkpoint.identity} takes about {need >> 20} MiB of disk and {free >> 20} "
            "MiB are free; free some space ('edgeserve cache prune'), or choose another --cache-dir"
        )
    if info is not None:
        info(
            f"packing {checkpoint.identity} for {backend.name} takes about {need >> 20} MiB of "
            f"disk, {free >> 20} MiB are free"
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


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "model"

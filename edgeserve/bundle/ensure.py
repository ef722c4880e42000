"""Finds the bundle of a checkpoint in the cache, or builds it once, whatever processes want it."""

from __future__ import annotations

import re
from pathlib import Path

from edgeserve.backends.contract import Backend, Progress
from edgeserve.bundle import cache
from edgeserve.bundle.build import Info, Recipe, build
from edgeserve.bundle.bundle import Bundle, check_target, open_bundle, touch
from edgeserve.bundle.key import bundle_key
from edgeserve.bundle.view import BundleCheckpoint
from edgeserve.checkpoint.digest_store import DigestStore
from edgeserve.checkpoint.staging import locked
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions
from edgeserve.errors import BundleError
from edgeserve.family.contract import Family

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
    recipe = _recipe(checkpoint, family, backend, options, progress, name)
    target = cache.bundles(options.cache_dir) / _folder_name(recipe)
    for _ in range(_ATTEMPTS):
        found = _cached(target, recipe.key, verify=options.verify)
        if found is not None:
            touch(target)
            return found
        with locked(target, lambda: progress("wait for another build", 0, 0)):
            if _is_cached(target, recipe.key, verify=options.verify):
                continue  # built by another process meanwhile
            build(recipe, target, progress, info)
        cache.prune(options.cache_dir, options.cache_max_bytes, keep=target)
    raise BundleError(f"bundle '{target.name}' is removed as soon as it is built; try again")


def _recipe(
    checkpoint: Checkpoint,
    family: Family,
    backend: Backend,
    options: EngineOptions,
    progress: Progress,
    name: str | None,
) -> Recipe:
    store = DigestStore(options.cache_dir, verify=options.verify, progress=progress)
    digest = checkpoint.digest(store.digest)
    return Recipe(
        checkpoint=checkpoint,
        digest=digest,
        key=bundle_key(digest, checkpoint.model_type, family, backend, options),
        family=family,
        backend=backend,
        options=options,
        name=name or Path(checkpoint.identity).name,
    )


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


def _is_cached(target: Path, key: str, *, verify: bool) -> bool:
    bundle = _cached(target, key, verify=verify)
    if bundle is not None:
        bundle.close()
    return bundle is not None


def _folder_name(recipe: Recipe) -> str:
    """Of the key alone: a checkpoint that was renamed still hits."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", recipe.checkpoint.model_type).strip("-.")[:60] or "model"
    return f"{slug}-{recipe.key[:_KEY_DIGITS]}"

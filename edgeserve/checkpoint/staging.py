"""Folders that appear whole or not at all.

A folder of the cache is made under another name and published by a rename. One lock file per
target makes processes build it once; whoever holds the lock may remove what a killed process left.
Lock files stay: removing one would let two processes hold "the" lock.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from edgeserve.errors import CheckpointError

_STAGING, _TRASH = ".staging-", ".trash-"


@contextmanager
def locked(target: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the exclusive lock of a target; `waiting` is called once when another holds it."""
    with _lock_file(target) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def scratch(target: Path) -> Iterator[Path]:
    """A fresh folder beside `target`, gone when the block ends unless it was published. The
    caller holds the lock of `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep_target(target)
    folder = target.parent / f"{_STAGING}{target.name}-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
    except OSError as error:
        raise unwritable(error) from None
    clean = partial(remove, folder)
    atexit.register(clean)  # the block may be in a daemon thread, which ends without its `finally`
    try:
        yield folder
    finally:
        atexit.unregister(clean)
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """Give a finished folder its name, in place of an older one."""
    _sync(folder)
    remove(target)
    folder.rename(target)
    _sync_entry(target.parent)


def sweep_target(target: Path) -> None:
    """Remove what dead processes left of this target. The caller holds its lock."""
    for prefix in (_STAGING, _TRASH):
        for folder in target.parent.glob(f"{prefix}{target.name}-????????"):
            shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Remove what dead processes left of any target of this folder."""
    for folder in [*parent.glob(f"{_STAGING}*"), *parent.glob(f"{_TRASH}*")]:
        name = folder.name.removeprefix(_STAGING).removeprefix(_TRASH)
        with _try_lock(parent / name[: name.rindex("-")]) as free:
            if free:
                shutil.rmtree(folder, ignore_errors=True)


def remove(target: Path) -> None:
    """Take a folder away at once; its bytes are freed afterwards."""
    if not target.exists():
        return
    trash = target.parent / f"{_TRASH}{target.name}-{secrets.token_hex(4)}"
    target.rename(trash)
    shutil.rmtree(trash, ignore_errors=True)


@contextmanager
def _try_lock(target: Path) -> Iterator[bool]:
    with _lock_file(target) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _lock_file(target: Path) -> TextIO:
    path = target.parent / ".locks" / target.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w")
    except OSError as error:
        raise unwritable(error) from None


def unwritable(error: OSError) -> CheckpointError:
    """Why a cache cannot be used, and what to do."""
    return CheckpointError(
        f"the cache folder cannot be written ({error.strerror}); choose another with --cache-dir "
        "or EDGESERVE_CACHE"
    )


def _sync(folder: Path) -> None:
    """Bytes reach the disk before the name does."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_entry(folder)


def _sync_entry(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

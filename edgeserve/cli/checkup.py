"""The checks of `doctor`: each yields findings about one topic, and raises when it cannot look."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from edgeserve import __version__
from edgeserve.cli.doctor import Finding
from edgeserve.cli.number import human_bytes

DISTRIBUTIONS = (
    "numpy",
    "falcon",
    "uvicorn",
    "uvloop",
    "tokenizers",
    "safetensors",
    "gguf",
    "huggingface-hub",
)
LOW_MEMORY = 1024**3
LOW_DISK = 2 * 1024**3


def versions() -> Iterator[Finding]:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield Finding("ok", "edgeserve", f"{__version__}, {python}, {sys.platform}")
    found = {name: _version(name) for name in DISTRIBUTIONS}
    present = [f"{name} {version}" for name, version in found.items() if version]
    yield Finding("ok", "packages", ", ".join(present))
    if missing := [name for name, version in found.items() if version is None]:
        yield Finding("FAIL", "packages", f"not installed: {', '.join(missing)}")


def cpu() -> Iterator[Finding]:
    facts = _proc("/proc/cpuinfo")
    name = facts.get("model name") or platform.processor() or "unknown"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("ok", "cpu", f"{name} ({platform.machine()}), {usable} logical cores usable")


def native() -> Iterator[Finding]:
    from edgeserve._native.kernels import isas
    from edgeserve.backends.cpu.backend import physical_cpus

    best, *others = isas()
    rest = f"; can also use {', '.join(others)}" if others else ""
    yield Finding("ok", "native", f"uses {best}{rest}")
    yield Finding("ok", "threads", f"{len(physical_cpus())}, one per physical core")


def memory() -> Iterator[Finding]:
    facts = _proc("/proc/meminfo")
    total, available = (_kib(facts.get(key, "0 kB")) for key in ("MemTotal", "MemAvailable"))
    mark = "note" if available < LOW_MEMORY else "ok"
    yield Finding(mark, "memory", f"{human_bytes(available)} available of {human_bytes(total)}")
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists():
        yield Finding("note", "huge pages", "this kernel has none; weights are read more slowly")
        return
    chosen = setting.read_text(encoding="ascii").partition("[")[2].partition("]")[0]
    if chosen == "never":
        yield Finding("note", "huge pages", f"off; 'echo madvise > {setting}' as root enables them")
    else:
        yield Finding("ok", "huge pages", chosen)


def families() -> Iterator[Finding]:
    from edgeserve.family.discover import installed

    found = installed()
    if not found:
        yield Finding("FAIL", "families", "none is installed; install edgeserve again")
        return
    for model_type, point in sorted(found.items()):
        owner = point.dist.name if point.dist else "unknown package"
        yield Finding("ok", f"family {model_type}", f"{point.value} of {owner}")


def cache(folder: Path) -> Iterator[Finding]:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-"):
        free = shutil.disk_usage(folder).free
    mark = "note" if free < LOW_DISK else "ok"
    yield Finding(mark, "cache", f"{folder}, {human_bytes(free)} free")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _proc(path: str) -> dict[str, str]:
    """The first `key: value` of each key in a file of /proc; empty where there is none."""
    facts: dict[str, str] = {}
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return facts
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            facts.setdefault(key.strip(), value.strip())
    return facts


def _kib(text: str) -> int:
    return int(text.split()[0]) * 1024

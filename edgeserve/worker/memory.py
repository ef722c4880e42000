"""How much memory this process may still use, as the kernel and a container see it."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int | None:
    """The smaller of what the machine and the container have left; None when nothing tells."""
    found = [value for value in (_machine(meminfo), _container(cgroup)) if value is not None]
    return min(found, default=None)


def _machine(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container(cgroup: Path) -> int | None:
    """Of a version 2 control group: its limit less what it uses, page cache not counted."""
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        stat = (cgroup / "memory.stat").read_text()
    except (OSError, ValueError):
        return None
    if not limit.isdigit():
        return None
    cache = next((int(s.split()[1]) for s in stat.splitlines() if s.startswith("file ")), 0)
    return max(0, int(limit) - max(0, used - cache))

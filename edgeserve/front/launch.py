"""How a worker process is started. It gets one end of a socket pair, and little else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import edgeserve

# The worker sees these variables and no others: no tokens, keys or proxies.
ALLOWED = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONUTF8",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONFAULTHANDLER",
        "PYTHONMALLOC",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "MALLOC_ARENA_MAX",
    ]
)
ALLOWED_PREFIXES = ("LC_", "XDG_", "EDGESERVE_", "CUDA_", "NVIDIA_")
SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")

LOADER = "edgeserve.worker.load:load_runtime"

# `python -c` puts the current folder first on the path, where a source tree would hide an installed
# package; the folder this front was imported from comes last, so that both run the same code.
PROGRAM = (
    "import sys; sys.path = [p for p in sys.path if p]; "
    "root = sys.argv[5]; root in sys.path or sys.path.append(root); "
    "from edgeserve.worker.process import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])"
)


def worker_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the front's environment that a worker sees."""
    return {
        name: value
        for name, value in environment.items()
        if (name in ALLOWED or name.startswith(ALLOWED_PREFIXES))
        and not any(word in name.upper() for word in SECRETS)
    }


def launch(
    *, loader: str = LOADER, log_level: str = "info"
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a worker; returns it and our end of the socket.

    It is killed when the calling *thread* ends (that is how the kernel defines a parent's death),
    so call this from the thread of the front's loop. Its stderr is ours.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    root = str(Path(edgeserve.__path__[0]).parent)
    command = [sys.executable, "-c", PROGRAM, str(theirs.fileno()), str(os.getpid())]
    try:
        process = subprocess.Popen(
            [*command, loader, log_level, root],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=worker_environment(os.environ),
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours

"""`edgeserve COMMAND` as a process of its own, for tests from the outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def edgeserve(
    *argv: str, cache: Path, piped: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edgeserve", *argv],
        env=os.environ | {"EDGESERVE_CACHE": str(cache)},
        input=piped,
        stdin=subprocess.DEVNULL if piped is None else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

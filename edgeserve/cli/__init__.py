"""The command line: one module per sub-command; `main` runs one and answers with an exit code.

0 done, 1 failed, 2 wrong usage, 130 interrupted. Modules here import only light things at the
top, so that `--help` is quick; what a command needs is imported when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from edgeserve.cli.failure import guarded
from edgeserve.cli.parser import parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    return guarded(lambda: parse(sys.argv[1:] if argv is None else argv))

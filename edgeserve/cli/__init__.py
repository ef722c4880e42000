"""The command line: one module per sub-command; `main` runs one and answers with an exit code.

0 done, 1 failed, 2 wrong usage, 130 interrupted. Modules here import only light things at the
top, so that `--help` is quick; what a command needs is imported when it runs.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` and whatever else takes time is imported where Ctrl-C is awaited
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    try:
        import sys

        from edgeserve.cli.failure import guarded
        from edgeserve.cli.parser import parse

        return guarded(lambda: parse(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:  # while it was importing
        return INTERRUPTED

"""From an exception to one sentence on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from edgeserve.cli import INTERRUPTED
from edgeserve.errors import EdgeserveError, StartError

FAILED, USAGE = 1, 2


def guarded(command: Callable[[], int]) -> int:
    """Run a command. No traceback reaches the user unless EDGESERVE_TRACEBACK=1 asks for it."""
    try:
        return command()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone (`edgeserve models | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if os.environ.get("EDGESERVE_TRACEBACK") == "1":
            raise
        print(f"edgeserve: {sentence(error)}", file=sys.stderr)
        return exit_code(error)


def exit_code(error: Exception) -> int:
    return error.exit_code if isinstance(error, StartError) else FAILED


def sentence(error: Exception) -> str:
    """What a user may read of it: our own errors speak for themselves, others are named."""
    if isinstance(error, EdgeserveError):
        return error.message
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("edgeserve"):
        return f"this installation is incomplete: {error}; install it again with 'pip install .'"
    if isinstance(error, OSError) and error.strerror:
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror}{where}"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} (EDGESERVE_TRACEBACK=1 shows where)"

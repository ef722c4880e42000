"""Write the parts of docs/ that are made from the code; a test fails when they are not current.

python docs/generate.py
"""

from __future__ import annotations

import argparse
import inspect
import re
from pathlib import Path

from edgeserve import errors
from edgeserve.cli.environment import VARIABLES
from edgeserve.cli.foreign import FLAGS
from edgeserve.cli.parser import COMMANDS
from edgeserve.errors import EdgeserveError, StartError

DOCS = Path(__file__).parent


def current(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def with_block(text: str, name: str, block: str) -> str:
    """`text` with what stands between the markers of `name` replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n{block}\n{end}{rest.partition(end)[2]}"


def table(*rows: tuple[str, ...]) -> str:
    rule = tuple("---" for _ in rows[0])
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


# errors.md -------------------------------------------------------------------------------------


def error_classes() -> list[type[EdgeserveError]]:
    """In the order of errors.py."""
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, EdgeserveError)
    ]


def _sentence(error: type[EdgeserveError]) -> str:
    return " ".join((error.__doc__ or "").split())


def error_tables() -> tuple[str, str]:
    """Over HTTP, and at the start of a command."""
    http = [("Status", "`type`", "`code`", "Class", "When")]
    start = [("Exit code", "`code`", "Class", "When")]
    for error in error_classes():
        row = (f"`{error.code}`", f"`{error.__name__}`", _sentence(error))
        if issubclass(error, StartError):
            start.append((str(error.exit_code), *row))
        elif error is not EdgeserveError:
            http.append((str(error.status), f"`{error.type}`", *row))
    return table(*http), table(*start)


# operations.md and differences.md -----------------------------------------------------------------


def flag_table(command: str) -> str:
    """Every flag that `--help` of a command shows."""
    parser = argparse.ArgumentParser(add_help=False)
    COMMANDS[command].add_arguments(parser)
    rows = [("Flag", "Value", "Meaning")]
    for action in parser._actions:  # argparse has no public way to list its flags
        if action.help is argparse.SUPPRESS or not action.option_strings:
            continue
        names = ", ".join(f"`{name}`" for name in action.option_strings)
        choices = " ".join(map(str, action.choices)) if action.choices else None
        value = choices or str(action.metavar or (action.dest.upper() if action.nargs != 0 else ""))
        rows.append((names, value, re.sub(r"\s+", " ", action.help or "")))
    return table(*rows)


def environment_table() -> str:
    rows = [(f"`{name}`", text) for name, text in VARIABLES.items()]
    return table(("Variable", "Meaning"), *rows)


def foreign_table() -> str:
    rows = [(f"`{flag.name}`", flag.source, flag.fate.value, flag.note) for flag in FLAGS]
    return table(("Flag", "Of", "Here", "Note"), *rows)


# ----------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Each generated page, complete."""
    http, start = error_tables()
    errors_page = with_block(current("errors.md"), "http", http)
    operations = with_block(current("operations.md"), "serve", flag_table("serve"))
    return {
        "errors.md": with_block(errors_page, "start", start),
        "operations.md": with_block(operations, "environment", environment_table()),
        "differences.md": with_block(current("differences.md"), "flags", foreign_table()),
    }


if __name__ == "__main__":
    for page, text in pages().items():
        (DOCS / page).write_text(text, encoding="utf-8")

"""The tree of sub-commands, and the parser's own voice."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from edgeserve import __version__
from edgeserve.cli import build, cache, chat, doctor, models, pull, run, serve
from edgeserve.cli.environment import VARIABLES
from edgeserve.cli.failure import USAGE

COMMANDS = {
    "serve": serve,
    "run": run,
    "chat": chat,
    "build": build,
    "pull": pull,
    "models": models,
    "cache": cache,
    "doctor": doctor,
}


class Parser(argparse.ArgumentParser):
    """Wrong usage is one sentence and a pointer, not the whole usage text."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}; see '{self.prog} --help'\n")


def _environment() -> str:
    width = max(map(len, VARIABLES))
    lines = [f"  {name:{width}}  {text}" for name, text in VARIABLES.items()]
    return "environment:\n" + "\n".join(lines)


def make_parser() -> Parser:
    parser = Parser(
        prog="edgeserve",
        description="Serve language models from one machine.",
        epilog=_environment(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"edgeserve {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def parse(argv: Sequence[str]) -> int:
    """Parse one command line and run its command; the exit code."""
    try:
        args = make_parser().parse_args(argv)
    except SystemExit as stop:  # argparse ends --help, --version and wrong usage this way
        return stop.code if isinstance(stop.code, int) else USAGE
    code: int = args.run(args)
    return code

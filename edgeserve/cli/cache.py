"""Look at the cache of bundles and downloads, and make room. What is being served stays."""

from __future__ import annotations

import argparse

from edgeserve.cli import number
from edgeserve.cli.model_flags import add_cache_flags

SUMMARY = "list, prune or clear the cache"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="bundles, newest use first", allow_abbrev=False)
    listing.set_defaults(act=show)
    prune = actions.add_parser("prune", help="remove the least recently used", allow_abbrev=False)
    prune.add_argument(
        "--max-size", type=number.byte_size, metavar="SIZE", help="to keep (default: 50GiB)"
    )
    prune.set_defaults(act=shrink)
    clear = actions.add_parser("clear", help="remove all bundles", allow_abbrev=False)
    clear.add_argument("--downloads", action="store_true", help="and all downloads")
    clear.set_defaults(act=empty)
    for action in (listing, prune, clear):
        add_cache_flags(action)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code


def show(args: argparse.Namespace) -> int:
    raise NotImplementedError


def shrink(args: argparse.Namespace) -> int:
    raise NotImplementedError


def empty(args: argparse.Namespace) -> int:
    raise NotImplementedError

"""Look at the cache of bundles and downloads, and make room. What is being served stays."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

from edgeserve.cli import number
from edgeserve.cli.environment import Environment
from edgeserve.cli.model_flags import add_cache_flags, cache_dir

if TYPE_CHECKING:
    from edgeserve.bundle.cache import Entry

SUMMARY = "list, prune or clear the cache"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what is there, last used first", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print the list as JSON")
    listing.set_defaults(act=show)
    prune = actions.add_parser(
        "prune", help="remove the least recently used bundles", allow_abbrev=False
    )
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
    from edgeserve.bundle.cache import entries

    found = entries(cache_dir(args, Environment()))
    if args.json:
        print(json.dumps([_data(entry) for entry in found], indent=2))
        return 0
    for entry in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        state = "in use" if entry.in_use else ""
        size = number.human_bytes(entry.bytes)
        print(f"{entry.kind:8}  {size:>9}  {used}  {state:6}  {entry.identity}  {entry.path.name}")
    print(f"{len(found)} in {cache_dir(args, Environment())}, {_total(found)}")
    return 0


def shrink(args: argparse.Namespace) -> int:
    from edgeserve.bundle.cache import LIMIT, prune

    return _removed(prune(cache_dir(args, Environment()), args.max_size or LIMIT))


def empty(args: argparse.Namespace) -> int:
    from edgeserve.bundle.cache import clear

    return _removed(clear(cache_dir(args, Environment()), with_downloads=args.downloads))


def _removed(entries: list[Entry]) -> int:
    for entry in entries:
        print(f"removed {entry.kind} {entry.path.name}")
    print(f"removed {len(entries)}, {_total(entries)}")
    return 0


def _total(entries: list[Entry]) -> str:
    return number.human_bytes(sum(entry.bytes for entry in entries))


def _data(entry: Entry) -> dict[str, object]:
    return {
        "kind": entry.kind,
        "path": str(entry.path),
        "identity": entry.identity,
        "backend": entry.backend,
        "bytes": entry.bytes,
        "used": entry.used,
        "in_use": entry.in_use,
    }

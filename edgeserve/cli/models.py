"""List the models that are cached, and the catalogue of models known by name."""

from __future__ import annotations

import argparse

from edgeserve.cli.model_flags import add_cache_flags

SUMMARY = "list models"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    add_cache_flags(parser)


def run(args: argparse.Namespace) -> int:
    raise NotImplementedError

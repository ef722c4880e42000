"""Build a bundle: the model's weights packed for this machine, with all it needs to be served.

The bundle stands in the cache, where `serve` finds it; its folder is printed on stdout.

  edgeserve build ./my-model
  edgeserve build ./my-model --output ./my-bundle
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from edgeserve.cli.model_flags import (
    CHECKPOINT_HELP,
    add_bundle_flags,
    add_cache_flags,
    engine_options,
)
from edgeserve.cli.progress import Reporter, reporter
from edgeserve.config import EngineOptions
from edgeserve.errors import BadConfig

SUMMARY = "build a bundle"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", nargs="?", metavar="CHECKPOINT", help=CHECKPOINT_HELP)
    parser.add_argument("--output", metavar="DIR", help="copy the bundle to this new folder")
    add_bundle_flags(parser)
    add_cache_flags(parser)


def run(args: argparse.Namespace) -> int:
    output = Path(args.output).expanduser() if args.output else None
    if output is not None and output.exists():
        raise BadConfig(f"--output {args.output} exists already; name a new folder")
    with reporter() as progress:
        print(build_bundle(engine_options(args), output, progress))
    return 0


def build_bundle(options: EngineOptions, output: Path | None, progress: Reporter) -> Path:
    """The bundle's folder: in the cache, or its copy at `output`."""
    from edgeserve.bundle.ensure import ensure
    from edgeserve.checkpoint.open import open_checkpoint
    from edgeserve.checkpoint.resolve import resolve
    from edgeserve.family import discover
    from edgeserve.worker.load import load_backend

    found = resolve(
        options.checkpoint,
        cache_dir=options.cache_dir,
        offline=options.offline,
        progress=progress,
    )
    checkpoint = open_checkpoint(found)
    family = discover.load(options.family or checkpoint.model_type)
    backend = load_backend(options.backend)
    bundle = ensure(checkpoint, family, backend, options, progress, info=_say, name=found.name)
    try:
        if output is None:
            return bundle.path
        shutil.copytree(bundle.path, output)
        return output
    finally:
        bundle.close()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)

"""Check this machine and this installation. Exit code 1 when something is unusable."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from edgeserve.cli.environment import Environment
from edgeserve.cli.model_flags import add_cache_flags

SUMMARY = "check the machine and the installation"


class Finding(NamedTuple):
    """One line of the report."""

    mark: str  # ok | note | FAIL
    topic: str
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_cache_flags(parser)


def run(args: argparse.Namespace) -> int:
    from edgeserve.cli import checkup
    from edgeserve.cli.model_flags import cache_dir

    folder = cache_dir(args, Environment())
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("versions", checkup.versions),
        ("cpu", checkup.cpu),
        ("native", checkup.native),
        ("memory", checkup.memory),
        ("families", checkup.families),
        ("cache", lambda: checkup.cache(folder)),
    ]
    findings = [finding for topic, check in checks for finding in _guarded(topic, check)]
    if args.json:
        import json

        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        _print(findings)
    return 1 if any(finding.mark == "FAIL" for finding in findings) else 0


def _guarded(topic: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """A check that breaks is a finding, not the end of the report."""
    from edgeserve.cli.failure import sentence

    try:
        yield from check()
    except Exception as error:
        yield Finding("FAIL", topic, sentence(error))


def _print(findings: list[Finding]) -> None:
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        print(f"{finding.mark:4}  {finding.topic:{width}}  {finding.text}")
    failed = [finding.topic for finding in findings if finding.mark == "FAIL"]
    if failed:
        print(f"unusable: {', '.join(failed)}", file=sys.stderr)

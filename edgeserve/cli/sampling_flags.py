"""Flags of sampling: server defaults for `serve`, the request itself for `run` and `chat`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from edgeserve.cli import number
from edgeserve.sampling import RANGES, SamplerDefaults

FLAGS = {
    "temperature": "0 is greedy",
    "top_p": "keep the likeliest tokens up to this probability; 1 is off",
    "top_k": "keep this many tokens; 0 is off",
    "min_p": "drop tokens below this share of the likeliest; 0 is off",
    "repetition_penalty": "1 is off",
}


def _in_range(name: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = number.real(text)
        value = int(value) if RANGES[name].kind is int and value.is_integer() else value
        if value not in RANGES[name]:
            raise argparse.ArgumentTypeError(f"{text} is not {RANGES[name]}")
        return value

    return parse


def add_sampling_flags(parser: argparse.ArgumentParser, title: str) -> None:
    group = parser.add_argument_group(title)
    for name, text in FLAGS.items():
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, type=_in_range(name), metavar="X", help=text)


def sampler_defaults(args: argparse.Namespace) -> SamplerDefaults:
    return SamplerDefaults(**{name: getattr(args, name) for name in FLAGS})

"""Answer one prompt on stdout. Piped input follows the prompt, or is the prompt.

edgeserve run "Write a haiku about rivers"
edgeserve run "Summarise this:" < notes.txt
"""

from __future__ import annotations

import argparse
import sys

from edgeserve.cli import INTERRUPTED
from edgeserve.cli.generate import add_generation_flags, open_model, sampling_params, stream_answer
from edgeserve.errors import BadConfig

SUMMARY = "answer one prompt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="default: what is piped in")
    parser.add_argument("--raw", action="store_true", help="continue the text; no chat template")
    add_generation_flags(parser)


def read_prompt(argument: str | None) -> str:
    """The argument and what is piped in, with an empty line between them."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    parts = [part for part in (argument, piped.strip()) if part]
    if not parts:
        raise BadConfig("no prompt; write edgeserve run 'PROMPT', or pipe a text in")
    return "\n\n".join(parts)


def conversation(prompt: str, system: str | None) -> list[dict[str, str]]:
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": prompt}]


def run(args: argparse.Namespace) -> int:
    prompt = read_prompt(args.prompt)
    params = sampling_params(args)
    with open_model(args) as llm:
        if args.raw:
            reply = stream_answer(llm, prompt, params, apply_chat_template=False)
        else:
            reply = stream_answer(llm, conversation(prompt, args.system), params)
    if reply.text and not reply.text.endswith("\n"):
        print()
    return INTERRUPTED if reply.interrupted else 0

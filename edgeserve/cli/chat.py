"""Talk to a model in the terminal. /help lists what can be typed.

edgeserve chat
edgeserve chat --model ./my-model --system "Answer in one sentence."
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from edgeserve.cli.generate import add_generation_flags, open_model, sampling_params, stream_answer
from edgeserve.errors import BadConfig, EdgeserveError

if TYPE_CHECKING:
    from pathlib import Path

    from edgeserve.cli.dialogue import Dialogue
    from edgeserve.cli.keyboard import Keyboard
    from edgeserve.llm import LLM
    from edgeserve.pipeline.output import GenerationMetrics
    from edgeserve.sampling import SamplingParams

SUMMARY = "talk to a model in the terminal"

HELP = """\
/help            this list
/clear           forget the conversation
/regen           answer the last question again
/file PATH...    put text files before the next question
/exit            leave (also Ctrl-D)
Alt+Enter starts a new line, Enter sends. Arrow keys walk through earlier lines.
Ctrl-C ends an answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_generation_flags(parser)


def run(args: argparse.Namespace) -> int:
    from edgeserve.cli.dialogue import Dialogue
    from edgeserve.cli.environment import Environment
    from edgeserve.cli.keyboard import Keyboard
    from edgeserve.cli.model_flags import cache_dir

    if not sys.stdin.isatty():
        raise BadConfig("chat needs a terminal; use 'edgeserve run' for piped input")
    history: Path = cache_dir(args, Environment()) / "chat_history"
    params = sampling_params(args)
    with open_model(args) as llm:
        ChatLoop(llm, params, Dialogue(args.system), Keyboard(history)).run()
    return 0


class ChatLoop:
    """Reads a line, obeys it when it is a command, answers it otherwise."""

    def __init__(
        self, llm: LLM, params: SamplingParams, dialogue: Dialogue, keyboard: Keyboard
    ) -> None:
        self._llm = llm
        self._params = params
        self._dialogue = dialogue
        self._keyboard = keyboard

    def run(self) -> None:
        print(f"{self._llm.name}; /help lists the commands")
        while (line := self._keyboard.read()) is not None:
            if line.startswith("/"):
                if not self._obey(line):
                    return
            elif line:
                self._dialogue.ask(line)
                self._answer()

    def _obey(self, line: str) -> bool:
        """Carry out a command; False ends the chat."""
        command, _, rest = line.partition(" ")
        if command in ("/exit", "/quit"):
            return False
        if command == "/help":
            print(HELP)
        elif command == "/clear":
            self._dialogue.clear()
            print("the conversation is empty")
        elif command == "/regen":
            self._regenerate()
        elif command == "/file":
            self._attach(rest)
        else:
            print(f"unknown command {command}; /help lists what there is")
        return True

    def _regenerate(self) -> None:
        if self._dialogue.again():
            self._answer()
        else:
            print("there is no question yet")

    def _attach(self, rest: str) -> None:
        import shlex

        try:
            for path in shlex.split(rest):
                print(f"{path}: {self._dialogue.attach(path)} characters")
        except (EdgeserveError, ValueError) as error:
            print(error)

    def _answer(self) -> None:
        try:
            reply = stream_answer(self._llm, self._dialogue.messages, self._params)
        except EdgeserveError as error:
            self._dialogue.withdraw()
            print(error.message)
            return
        print()
        if reply.text:
            self._dialogue.answered(reply.text)
        else:
            self._dialogue.withdraw()
        if reply.metrics is not None:
            print(f"[{summary(reply.metrics, self._llm.context)}]")


def summary(metrics: GenerationMetrics, context: int) -> str:
    """Speed, latency and use of the context after one answer."""
    used = metrics.prompt_tokens + metrics.completion_tokens
    return (
        f"{metrics.tokens_per_second:.1f} tokens/s, first token after "
        f"{metrics.time_to_first_token_s:.2f} s, {metrics.completion_tokens} tokens in "
        f"{metrics.total_s:.1f} s, context {used} of {context} ({used / context:.0%})"
    )

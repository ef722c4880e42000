"""Reads lines from a terminal: history kept in a file, Alt+Enter for a new line, Tab completion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    PathCompleter,
    WordCompleter,
    merge_completers,
)
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

COMMANDS = ["/help", "/clear", "/regen", "/file", "/exit"]


class _Files(Completer):
    """Paths after `/file`."""

    def __init__(self) -> None:
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        head, space, tail = document.text_before_cursor.rpartition(" ")
        if space and head.startswith("/file"):
            yield from self._paths.get_completions(Document(tail, len(tail)), complete_event)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class Keyboard:
    """One line at a time; None when the user leaves with Ctrl-D."""

    def __init__(
        self, history: Path, *, source: Input | None = None, screen: Output | None = None
    ) -> None:
        history.parent.mkdir(parents=True, exist_ok=True)
        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)),
            key_bindings=_keys(),
            completer=merge_completers([WordCompleter(COMMANDS, sentence=True), _Files()]),
            complete_while_typing=False,
            input=source,
            output=screen,
        )

    def read(self) -> str | None:
        try:
            return self._session.prompt("> ").strip()
        except KeyboardInterrupt:
            return ""  # an abandoned line
        except EOFError:
            return None

"""What a wire format is: how its calls begin, how they are read, how a grammar makes them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.reader import Reader, Wait


class Slot(Enum):
    """How the arguments stand between `CallGrammar.open` and `CallGrammar.close`."""

    JSON = "json"  # one JSON object that the tool's schema accepts
    XML = "xml"  # per parameter: `parameter_open` with its name, bare text, `parameter_close`
    PYTHON = "python"  # `name=literal`, separated by ", "


class CallGrammar(msgspec.Struct, frozen=True, kw_only=True):
    """The literal text around calls. One or more calls are written

        begin  open(NAME) ARGUMENTS close  (separator  open(NAME) ARGUMENTS close)*  end

    A guide that enforces `tool_choice` builds this as a grammar: one alternative of
    `open`/arguments/`close` per allowed tool (only the named one when a tool is named), at most
    one call when `parallel_tool_calls` is false, ARGUMENTS from the tool's schema. For `required`
    and named the grammar is active from the first token after reasoning. For `auto` with `strict`
    tools the text is free until one of `triggers` was generated, each a beginning of `begin` plus
    `open`; from there the grammar holds to its end, and free text may follow. No triggers: calls
    have no sign of their own, so that `auto` cannot be guided. Any of `special` that occurs in a
    literal is to be matched as the token of that text where the tokenizer has such a token.
    """

    triggers: tuple[str, ...]
    begin: str = ""
    open: str  # with {name} where the tool's name goes; other braces are literal
    slot: Slot = Slot.JSON
    close: str
    separator: str = ""
    end: str = ""
    parameter_open: str = ""  # with {name}
    parameter_close: str = ""
    special: tuple[str, ...] = ()

    def opening(self, name: str) -> str:
        return self.open.replace("{name}", name)

    def parameter_opening(self, name: str) -> str:
        return self.parameter_open.replace("{name}", name)


Read = Callable[[str, Reader, Calls], Wait[None]]


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A format whose calls stand in the text of the answer.

    `read` is called with the opener that was read, or with "" before a starter. What it leaves
    held when it returns is content.
    """

    openers: tuple[str, ...]
    starters: str = ""  # characters that may begin a call where no content stands before
    special: tuple[str, ...] = ()  # special tokens that it knows, by their text
    read: Read
    grammar: CallGrammar

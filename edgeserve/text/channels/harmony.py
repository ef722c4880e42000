"""gpt-oss: every message names its channel and, for a call, its recipient.

    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>commentary
    to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>

`analysis` is reasoning, `final` and `commentary` without recipient are content, a message to
`functions.NAME` is a call on any channel (the recipient stands before or after the channel). What
a message to another recipient says is reasoning on `analysis`, else content.
"""

from __future__ import annotations

import re

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.delta import Content, Reasoning
from edgeserve.text.channels.json_call import EMPTY
from edgeserve.text.channels.json_text import JsonScanner
from edgeserve.text.channels.reader import Reader, Wait, openers
from edgeserve.text.channels.wire import CallGrammar

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
ENDS = ("<|end|>", "<|return|>", "<|call|>")
SPECIAL = (START, CHANNEL, MESSAGE, CONSTRAIN, *ENDS)

_HEADS = (CHANNEL, START, MESSAGE, CONSTRAIN, "to=", *ENDS)  # how a header may begin or go on
_AFTER_BODY = (*ENDS, START, CHANNEL)
_NAME = re.compile(r"<\|channel\|>\s*([a-z]+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_ANALYSIS = "analysis"

GRAMMAR = CallGrammar(
    triggers=(CHANNEL + "commentary to=functions.",),
    open=CHANNEL + "commentary to=functions.{name} " + CONSTRAIN + "json" + MESSAGE,
    close=ENDS[2],
    separator=START + "assistant",
    special=SPECIAL,
)


class Harmony:
    """`header`: the header of the message that the prompt has begun, up to where it ends; None
    when the prompt begins none."""

    def __init__(self, reader: Reader, calls: Calls, *, header: str | None) -> None:
        self._r = reader
        self._c = calls
        self._header = header
        self.inside = header is not None and MESSAGE in header and _is_reasoning(header)

    def read(self) -> Wait[None]:
        r = self._r
        header: str | None = self._header
        if header is None or MESSAGE not in header:
            header = yield from self._read_header(header or "")
        while header is not None:
            yield from self._body(header)
            if r.ended and r.at == len(r.text):
                return
            header = yield from self._read_header("")

    def _read_header(self, begun: str) -> Wait[str | None]:
        """Read up to the body of the next message; None at the end. Text that is no header is
        the body of a plain answer; a message that ends in its header says nothing, and what is
        left of a header at the end is no text of anybody."""
        r = self._r
        while True:
            r.drop()
            yield from r.skip_space()
            if (yield from r.char()) and (yield from r.starts(_HEADS)) is None:
                r.at = r.held
                return begun
            start = r.at - r.held
            found = yield from r.until((MESSAGE, *ENDS))
            header = begun + r.text[r.held + start : r.at]
            r.at += len(found or "")
            if found is None or found == MESSAGE:
                r.drop()
                return header if found else None

    def _body(self, header: str) -> Wait[None]:
        recipient = _RECIPIENT.search(header)
        name = recipient.group(1).removeprefix("functions.") if recipient else ""
        if name in self._c.tools:
            yield from self._call(name)
        self.inside = _is_reasoning(header) and name not in self._c.tools
        yield from self._text(Reasoning if self.inside else Content)
        self.inside = False

    def _call(self, name: str) -> Wait[None]:
        """The JSON of a call's body; what is left of the body is text."""
        r, c = self._r, self._c
        if (yield from r.expect("{")):
            yield from r.skip_space()
            if (yield from r.char()) not in ('"', "}"):
                return
            c.start(name)
            scanner = JsonScanner()
            scanner.feed("{", 0)
            c.end(complete=(yield from r.copy(scanner, c.arguments)))
        else:
            yield from r.skip_space()
            if (yield from r.char()) == "" and r.truncated:
                return
            if (yield from r.char()) and (yield from r.starts(_AFTER_BODY)) is None:
                return
            c.whole(name, EMPTY)
        yield from r.skip_space()
        if (yield from r.char()) == "" or (yield from r.starts(_AFTER_BODY)):
            r.drop()

    def _text(self, kind: type[Content] | type[Reasoning]) -> Wait[None]:
        r = self._r
        give = r.content if kind is Content else r.reasoning
        look = openers(_AFTER_BODY)
        while True:
            match = look.search(r.text, r.at)
            r.at = match.start() if match else look.may_start(r.text, r.at)
            give()
            if match:
                r.at = match.end() if match.group() in ENDS else r.at
                return
            if not (yield from r.flow(kind, look)):
                r.at = len(r.text)
                give()
                return


def _is_reasoning(header: str) -> bool:
    names = _NAME.findall(header)
    return bool(names) and names[-1] == _ANALYSIS


def prompt_header(prompt: str) -> str | None:
    """The header of the assistant's message that the prompt ends with, whole or not."""
    start = prompt.rfind(START + "assistant")
    if start < 0 or any(prompt.find(end, start) >= 0 for end in ENDS):
        return None
    header, message, _ = prompt[start:].partition(MESSAGE)
    return header + message

"""The extent of one Python expression, followed through text that comes in pieces."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\"'()\[\]{},]*")
_BODY = {quote: re.compile(rf"[^{quote}\\]*", re.DOTALL) for quote in "\"'"}
_PAIRS = {")": "(", "]": "[", "}": "{"}


class ExpressionScanner:
    """A `reader.Scanner`. Done at the comma or closing bracket after the expression, which it
    does not read. `whole`: done after the bracket that closes the first one instead."""

    def __init__(self, *, whole: bool = False) -> None:
        self.done = False
        self.broken = False
        self._whole = whole
        self._out: list[str] = []
        self._open: list[str] = []
        self._quote = ""
        self._is_escaped = False

    def feed(self, text: str, at: int) -> int:
        start = at
        while at < len(text) and not self.done and not self.broken:
            at = self._in_string(text, at) if self._quote else self._outside(text, at)
        self._out.append(text[start:at])
        return at

    def take(self) -> str:
        taken = "".join(self._out)
        self._out.clear()
        return taken

    def _in_string(self, text: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return at + 1
        match = _BODY[self._quote].match(text, at)
        assert match
        at = match.end()
        if at == len(text):
            return at
        if text[at] == self._quote:
            self._quote = ""
        else:
            self._is_escaped = True
        return at + 1

    def _outside(self, text: str, at: int) -> int:
        match = _PLAIN.match(text, at)
        assert match
        at = match.end()
        if at == len(text):
            return at
        char = text[at]
        if char in "\"'":
            self._quote = char
        elif char in "([{":
            self._open.append(char)
        elif char == "," or not self._open:
            if not self._open:
                self.done = True
                return at
        elif self._open.pop() != _PAIRS[char]:
            self.broken = True
            return at
        elif self._whole and not self._open:
            self.done = True
        return at + 1

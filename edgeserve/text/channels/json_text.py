"""One JSON value, followed strictly through text that comes in pieces, copied as it comes.

What models commonly get wrong inside a value is put right in the copy, so that it stays JSON:
raw control characters in strings are escaped, a backslash that starts no escape is doubled, `\\'`
becomes `'`, and True, False, None become JSON's words. Anything else that is not JSON is broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_SPACE = re.compile(r"[ \t\n\r]*")
_BODY = re.compile(r'[^"\\\x00-\x1f]*')
_ATOM = re.compile(r"[-+.0-9A-Za-z]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"True": "true", "False": "false", "None": "null"} | {
    word: word for word in ("true", "false", "null")
}
_ESCAPES = frozenset('"\\/bfnrt')
_HEX = frozenset("0123456789abcdefABCDEF")


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


class JsonScanner:
    """A `reader.Scanner`. Where it stops does not depend on how the text was cut."""

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self._out: list[str] = []
        self._open: list[str] = []  # the brackets around the place where reading is
        self._step: Callable[[str, int], int] = self._value
        self._is_key = False
        self._part = ""  # of a number, word or escape that is not whole

    def feed(self, text: str, at: int) -> int:
        end = len(text)
        while at < end and not self.done and not self.broken:
            at = self._step(text, at)
        return at

    @property
    def pending(self) -> int:
        """Characters read of which `take` has given nothing yet."""
        return len(self._part) + (self._step == self._escape)

    def take(self) -> str:
        taken = "".join(self._out)
        self._out.clear()
        return taken

    def _skip(self, text: str, at: int) -> int:
        match = _SPACE.match(text, at)
        assert match
        if match.end() > at:
            self._out.append(match.group())
        return match.end()

    def _keep(self, text: str, step: Callable[[str, int], int]) -> None:
        self._out.append(text)
        self._step = step

    def _value(self, text: str, at: int) -> int:
        at = self._skip(text, at)
        if at == len(text):
            return at
        char = text[at]
        if char == '"':
            self._is_key = False
            self._keep(char, self._string)
        elif char in "{[":
            self._open.append(char)
            self._keep(char, self._first_key if char == "{" else self._first_item)
        elif char.isascii() and (char.isalnum() or char == "-"):
            self._part = ""
            self._step = self._atom
            return at
        else:
            self.broken = True
            return at
        return at + 1

    def _first_item(self, text: str, at: int) -> int:
        at = self._skip(text, at)
        if at < len(text) and text[at] == "]":
            return self._close(text, at)
        if at < len(text):
            self._step = self._value
        return at

    def _first_key(self, text: str, at: int) -> int:
        at = self._skip(text, at)
        if at < len(text) and text[at] == "}":
            return self._close(text, at)
        if at < len(text):
            self._step = self._key
        return at

    def _key(self, text: str, at: int) -> int:
        at = self._skip(text, at)
        if at == len(text):
            return at
        if text[at] != '"':
            self.broken = True
            return at
        self._is_key = True
        self._keep('"', self._string)
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        at = self._skip(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            self.broken = True
            return at
        self._keep(":", self._value)
        return at + 1

    def _next(self, text: str, at: int) -> int:
        """After a value inside brackets."""
        at = self._skip(text, at)
        if at == len(text):
            return at
        is_object = self._open[-1] == "{"
        if text[at] == ",":
            self._keep(",", self._key if is_object else self._value)
            return at + 1
        if text[at] == ("}" if is_object else "]"):
            return self._close(text, at)
        self.broken = True
        return at

    def _close(self, text: str, at: int) -> int:
        self._open.pop()
        self._out.append(text[at])
        self._after()
        return at + 1

    def _after(self) -> None:
        """A value has ended."""
        self._step = self._next
        self.done = not self._open

    def _atom(self, text: str, at: int) -> int:
        match = _ATOM.match(text, at)
        assert match
        self._part += match.group()
        if match.end() == len(text):
            return match.end()
        word = self._part if is_number(self._part) else _WORDS.get(self._part)
        if word is None:
            self.broken = True
        else:
            self._part = ""
            self._out.append(word)
            self._after()
        return match.end()

    def _string(self, text: str, at: int) -> int:
        match = _BODY.match(text, at)
        assert match
        if match.end() > at:
            self._out.append(match.group())
            at = match.end()
        if at == len(text):
            return at
        char = text[at]
        if char == '"':
            self._out.append(char)
            if self._is_key:
                self._step = self._colon
            else:
                self._after()
        elif char == "\\":
            self._part = ""
            self._step = self._escape
        else:
            self._out.append(json.dumps(char)[1:-1])
        return at + 1

    def _escape(self, text: str, at: int) -> int:
        char = text[at]
        if self._part:  # "u" and digits
            return self._unicode(char, at)
        if char == "u":
            self._part = char
            return at + 1
        if char in _ESCAPES:
            self._keep("\\" + char, self._string)
            return at + 1
        if char == "'":
            self._keep(char, self._string)
            return at + 1
        self._keep("\\\\", self._string)  # the character is read as part of the string
        return at

    def _unicode(self, char: str, at: int) -> int:
        if char not in _HEX:
            self._keep("\\\\" + self._part, self._string)
            self._part = ""
            return at
        self._part += char
        if len(self._part) == 5:
            self._keep("\\" + self._part, self._string)
            self._part = ""
        return at + 1

"""Calls as JSON objects: `{"name": NAME, "arguments": {...}}`, alone, in arrays, or several.

Also taken: `parameters` for `arguments`, OpenAI's nesting under `function`, arguments as a string
of JSON, no arguments at all, keys in any order. The call is told when its name and the first
character of its arguments are known; from then on arguments stream. An object that names no
known tool is content, to its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from enum import Enum

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.coerce import load_json
from edgeserve.text.channels.json_text import JsonScanner
from edgeserve.text.channels.reader import Reader, Wait

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
EMPTY = "{}"


class Outcome(Enum):
    CALLED = 1
    CONTENT = 2  # read to its end, and given out as content
    BROKEN = 3  # not JSON, or unfinished; what is held of it is content


def read_payloads(r: Reader, c: Calls, closer: str = "") -> Wait[None]:
    """Objects and arrays of objects, one after the other, and the closer when it is there."""
    before = c.count
    while (opening := (yield from peek(r))) in ("{", "["):
        yield from r.skip_space()
        read = read_object if opening == "{" else read_array
        if (yield from read(r, c)) is Outcome.BROKEN:
            return
        if c.count > before and closer and (yield from r.expect(closer)):
            r.drop()
            return


def peek(r: Reader) -> Wait[str]:
    """The next character that is no space; nothing is read."""
    back = r.at - r.held
    yield from r.skip_space()
    char = yield from r.char()
    r.at = r.held + back
    return char


def read_array(r: Reader, c: Calls, *, nested: bool = False) -> Wait[Outcome]:
    before = c.count
    r.at += 1
    while True:
        yield from r.skip_space()
        char = yield from r.char()
        if char == "{":
            if (yield from read_object(r, c, nested=nested)) is Outcome.BROKEN:
                return Outcome.BROKEN
        elif char == ",":
            r.at += 1
        elif char == "]":
            r.at += 1
            if c.count == before:
                return Outcome.CONTENT
            r.drop()
            return Outcome.CALLED
        else:
            return Outcome.BROKEN


def read_object(r: Reader, c: Calls, *, nested: bool = False) -> Wait[Outcome]:
    return (yield from _Object(r, c, nested=nested).read())


class _Object:
    def __init__(self, reader: Reader, calls: Calls, *, nested: bool) -> None:
        self._r = reader
        self._c = calls
        self._is_nested = nested  # in `tool_calls` of another
        self._in_function = False
        self._before = calls.count
        self._name: str | None = None
        self._arguments: str | None = None  # read before the name
        self._started = False
        self._complete = False
        self._refused = False

    def read(self) -> Wait[Outcome]:
        sound = yield from self._members()
        r, c = self._r, self._c
        if self._started and not self._complete:
            c.end(complete=False)
            return Outcome.BROKEN
        if sound and self._name is not None and not self._has_told() and not self._refused:
            c.whole(self._name, EMPTY)
        r.released = False
        if self._has_told() and (sound or self._complete):
            r.drop()
            return Outcome.CALLED
        if not sound:
            return Outcome.BROKEN
        r.content()
        return Outcome.CONTENT

    def _has_told(self) -> bool:
        return self._c.count > self._before

    def _members(self) -> Wait[bool]:
        r = self._r
        r.at += 1
        if (yield from r.expect("}")):
            return True
        while (yield from self._member()):
            yield from r.skip_space()
            char = yield from r.char()
            if char in ("}", ","):
                r.at += 1
            if char != ",":
                return char == "}"
        return False

    def _member(self) -> Wait[bool]:
        r = self._r
        yield from r.skip_space()
        if (yield from r.char()) != '"':
            return False
        key: str | None = None
        if not self._refused and not self._has_told():
            key = yield from quoted(r, _MEMBERS)
            if key is None:
                self._refuse()
        if key is None and not (yield from r.scan(JsonScanner())):
            return False
        if not (yield from r.expect(":")):
            return False
        yield from r.skip_space()
        read = _MEMBERS[key] if key is not None else _Object._skip
        return (yield from read(self))

    def _refuse(self) -> None:
        """The object is content, what was read of it and what will be."""
        if not self._r.ended:
            self._refused = self._r.released = True

    def _skip(self) -> Wait[bool]:
        return (yield from self._r.scan(JsonScanner()))

    def _read_name(self) -> Wait[bool]:
        if self._name is not None:
            return (yield from self._skip())
        self._name = yield from quoted(self._r, self._c.tools)
        if self._name is None:
            self._refuse()
            return (yield from self._skip())
        if self._arguments is not None:
            self._tell(self._arguments)
        return True

    def _read_function(self) -> Wait[bool]:
        """OpenAI's nesting, or the name."""
        if (yield from self._r.char()) != "{":
            return (yield from self._read_name())
        if self._in_function:
            return (yield from self._skip())
        self._in_function = True
        sound = yield from self._members()
        self._in_function = False
        return sound

    def _read_arguments(self) -> Wait[bool]:
        if self._arguments is not None:
            return (yield from self._skip())
        opening = yield from self._r.char()
        if opening == "{" and self._name is not None:
            return (yield from self._stream(self._name))
        scanner = JsonScanner()
        if not (yield from self._r.scan(scanner)):
            return False
        self._arguments = object_text(scanner.take())
        if self._arguments is None:
            self._refuse()
        elif self._name is not None:
            self._tell(self._arguments)
        return True

    def _stream(self, name: str) -> Wait[bool]:
        """Arguments as they come. The call is told when they begin like an object."""
        r, c = self._r, self._c
        r.at += 1
        yield from r.skip_space()
        if (yield from r.char()) not in ('"', "}"):
            return False
        c.start(name)
        self._started = True
        scanner = JsonScanner()
        scanner.feed("{", 0)
        self._complete = yield from r.copy(scanner, c.arguments)
        if self._complete:
            c.end(complete=True)
        return self._complete

    def _tell(self, arguments: str) -> None:
        self._c.whole(self._name or "", arguments)
        self._started = self._complete = True

    def _read_several(self) -> Wait[bool]:
        """`{"tool_calls": [...]}`"""
        if self._is_nested or (yield from self._r.char()) != "[":
            return (yield from self._skip())
        outcome = yield from read_array(self._r, self._c, nested=True)
        return outcome is not Outcome.BROKEN


_MEMBERS: dict[str, Callable[[_Object], Wait[bool]]] = {
    "name": _Object._read_name,
    "arguments": _Object._read_arguments,
    "parameters": _Object._read_arguments,
    "function": _Object._read_function,
    "tool_calls": _Object._read_several,
    "type": _Object._skip,
    "id": _Object._skip,
    "index": _Object._skip,
}


def object_text(text: str) -> str | None:
    """The text of arguments given whole: an object, a string that holds one, or null."""
    if text.strip() == "null":
        return EMPTY
    value = load_json(text)
    if isinstance(value, str):
        text = value.strip() or EMPTY
        value = load_json(text)
    if not isinstance(value, dict):
        return None
    return text if value else EMPTY


def quoted(r: Reader, allowed: Collection[str]) -> Wait[str | None]:
    """Read a JSON string that is one of the allowed. None, and nothing read, as soon as what
    stands here can be none of them."""
    if (yield from r.char()) != '"':
        return None
    limit = 2 + 12 * max((len(one) for one in allowed), default=0)  # each character an escape
    while True:
        if match := _STRING.match(r.text, r.at):
            try:
                found = json.loads(match.group(), strict=False)
            except ValueError:
                return None
            if found not in allowed:
                return None
            r.at = match.end()
            return str(found)
        part = r.text[r.at + 1 :]
        live = "\\" in part or any(one.startswith(part) for one in allowed)
        if not live or len(part) > limit or not (yield from r.more()):
            return None

"""Calls as Python: `[f(a=1, b="x"), g()]`. Arguments are made JSON, each when it is whole."""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.coerce import json_string, literal_json
from edgeserve.text.channels.json_call import EMPTY, Outcome
from edgeserve.text.channels.python_text import ExpressionScanner
from edgeserve.text.channels.reader import Reader, Wait


def read_list(r: Reader, c: Calls) -> Wait[Outcome]:
    """From the opening bracket."""
    r.at += 1
    while True:
        yield from r.skip_space()
        if (yield from read_call(r, c)) is Outcome.BROKEN:
            return Outcome.BROKEN
        yield from r.skip_space()
        char = yield from r.char()
        if char not in (",", "]"):
            return Outcome.BROKEN
        r.at += 1
        r.drop()
        if char == "]":
            return Outcome.CALLED


def read_call(r: Reader, c: Calls) -> Wait[Outcome]:
    """One call, from its name. Told with its first whole argument, or its end."""
    name = yield from r.word(c.tools, "(")
    if name is None:
        return Outcome.BROKEN
    call = _Call(r, c, name)
    if (yield from call.read()):
        return Outcome.CALLED
    if call.written:
        c.end(complete=False)
    return Outcome.BROKEN


class _Call:
    def __init__(self, reader: Reader, calls: Calls, name: str) -> None:
        self._r = reader
        self._c = calls
        self._name = name
        self.written: set[str] = set()

    def read(self) -> Wait[bool]:
        r, c = self._r, self._c
        while True:
            yield from r.skip_space()
            char = yield from r.char()
            if char == ")":
                break
            if char == "," and self.written:
                r.at += 1
                yield from r.skip_space()
            if (yield from r.char()) != ")" and not (yield from self._argument()):
                return False
        r.at += 1
        if self.written:
            r.drop()
            c.arguments("}")
            c.end(complete=True)
        else:
            c.whole(self._name, EMPTY)
        return True

    def _argument(self) -> Wait[bool]:
        r, c = self._r, self._c
        start = r.at - r.held
        while (char := (yield from r.char())).isidentifier() or char.isdigit():
            r.at += 1
        key = r.text[r.held + start : r.at]
        if not key.isidentifier() or key in self.written or not (yield from r.expect("=")):
            return False
        scanner = ExpressionScanner()
        if not (yield from r.scan(scanner)):
            return False
        value = literal_json(scanner.take())
        if value is None:
            return False
        lead = ", " if self.written else "{"
        if not self.written:
            c.start(self._name)
        self.written.add(key)
        r.drop()
        c.arguments(f"{lead}{json_string(key)}: {value}")
        return True

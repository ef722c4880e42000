"""Calls as tags: `<function=NAME><parameter=KEY>VALUE</parameter></function>` and its kin.

Values are bare text, so the arguments are made JSON here, one parameter when it closes. A closing
tag inside a value does not close it: what follows must be another tag of the call. One line break
after the opening tag and one before the closing tag belong to the tags.
"""

from __future__ import annotations

import msgspec

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.coerce import json_string, parameter_json
from edgeserve.text.channels.json_call import EMPTY, Outcome
from edgeserve.text.channels.reader import Reader, Wait

_NAME_STRIP = " \t\r\n\"'"


class Dialect(msgspec.Struct, frozen=True):
    """The literals around a call: `call` NAME `name_end` ... `call_end`."""

    call: str
    call_end: str
    parameter: str
    parameter_end: str
    name_end: str


FUNCTION = Dialect("<function=", "</function>", "<parameter=", "</parameter>", ">")
ATEM = Dialect(
    *('<atem:invoke name="', "</atem:invoke>", '<atem:parameter name="', "</atem:parameter>", '">')
)
DIALECTS = (FUNCTION, ATEM)


def read_functions(r: Reader, c: Calls, closer: str = "") -> Wait[None]:
    """Calls one after the other, and the closer when it is there."""
    before = c.count
    openers = tuple(dialect.call for dialect in DIALECTS)
    while True:
        back = r.at - r.held
        yield from r.skip_space()
        opener = yield from r.starts(openers)
        if opener is None:
            r.at = r.held + back
            break
        r.at += len(opener)
        dialect = DIALECTS[openers.index(opener)]
        if (yield from read_function(r, c, dialect, closer)) is Outcome.BROKEN:
            return
    if c.count > before and closer and (yield from r.expect(closer)):
        r.drop()


def read_function(r: Reader, c: Calls, dialect: Dialect, closer: str) -> Wait[Outcome]:
    """One call, from after the literal that opens it."""
    ends = (dialect.call_end, closer) if closer else (dialect.call_end,)
    name = yield from r.word(c.tools, dialect.name_end, _NAME_STRIP)
    if name is None:
        return (yield from _as_content(r, ends))
    function = _Function(r, c, dialect, name, ends)
    complete = yield from function.read()
    if function.written and not complete:
        c.end(complete=False)
    return Outcome.CALLED if complete else Outcome.BROKEN


def _as_content(r: Reader, ends: tuple[str, ...]) -> Wait[Outcome]:
    """No tool of the request: all of the call is content, as it comes."""
    r.released = True
    end = yield from r.until(ends)
    r.at += len(end or "")
    r.content()
    r.released = False
    return Outcome.BROKEN if end is None else Outcome.CONTENT


class _Function:
    def __init__(
        self, reader: Reader, calls: Calls, dialect: Dialect, name: str, ends: tuple[str, ...]
    ) -> None:
        self._r = reader
        self._c = calls
        self._dialect = dialect
        self._name = name
        self._ends = ends
        self._after = (dialect.parameter, *ends)  # what may follow a parameter
        self.written: set[str] = set()  # parameters begun

    def read(self) -> Wait[bool]:
        """Whether the call is whole. It is told with its first parameter, or its end."""
        r, c = self._r, self._c
        while True:
            yield from r.skip_space()
            tag = yield from r.starts(self._after)
            if tag is None:
                # A model that stops after a whole parameter has forgotten the closing tags.
                if (yield from r.char()) or r.truncated or not self.written:
                    return False
                break
            if tag != self._dialect.parameter:
                break
            r.at += len(tag)
            if not (yield from self._parameter()):
                return False
        if tag == self._dialect.call_end:
            r.at += len(tag)
        if self.written:
            r.drop()
            c.arguments("}")
            c.end(complete=True)
        else:
            c.whole(self._name, EMPTY)
        return True

    def _parameter(self) -> Wait[bool]:
        r, c = self._r, self._c
        start = r.at - r.held
        if (yield from r.until((self._dialect.name_end,))) is None:
            return False
        key = r.text[r.held + start : r.at].strip(_NAME_STRIP)
        r.at += len(self._dialect.name_end)
        lead = ", " if self.written else "{"
        if not self.written:
            c.start(self._name)
        is_new = key not in self.written
        self.written.add(key)
        r.drop()
        closed = yield from self._value()
        value = _trimmed(r.text[r.held : r.at])
        if closed:
            r.at += len(self._dialect.parameter_end)
            r.drop()
            if is_new:  # a repeated key would make the object ambiguous: the first stays
                schema = c.tools[self._name]
                c.arguments(f"{lead}{json_string(key)}: {parameter_json(value, key, schema)}")
        elif is_new:
            # Broken off, like JSON text that is: as much of a string as there is.
            r.drop()
            c.arguments(f"{lead}{json_string(key)}: {json_string(value)[:-1]}")
        return closed

    def _value(self) -> Wait[bool]:
        """Read up to the tag that closes the value; held is all of it."""
        r = self._r
        while (yield from r.until((self._dialect.parameter_end,))) is not None:
            back = r.at - r.held
            r.at += len(self._dialect.parameter_end)
            yield from r.skip_space()
            follows = yield from r.starts(self._after)
            is_last = r.ended and r.at == len(r.text)
            if follows is not None or is_last:
                r.at = r.held + back
                return True
        return False


def _trimmed(value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n")

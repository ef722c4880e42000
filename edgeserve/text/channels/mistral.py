"""Mistral. Tokenizers before v11: `[TOOL_CALLS][{"name": "f", "arguments": {...}}, ...]`.
From v11 on, once per call: `[TOOL_CALLS]f{...}`, `[TOOL_CALLS]f[ARGS]{...}` or
`[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{...}`. Ids in the text are not ours and are not used."""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.json_call import peek, read_payloads
from edgeserve.text.channels.json_text import JsonScanner
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import CallGrammar, Format

OPEN, ARGUMENTS, CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_ID_LETTERS = 64


def read(_opener: str, r: Reader, c: Calls) -> Wait[None]:
    if (yield from peek(r)) in ("[", "{"):
        yield from read_payloads(r, c)
    else:
        yield from read_named(r, c)


def read_named(r: Reader, c: Calls) -> Wait[None]:
    """NAME, then JSON. The call is told when the JSON begins like an object."""
    name = yield from _name(r, c)
    if name is None or not (yield from r.expect("{")):
        return
    yield from r.skip_space()
    if (yield from r.char()) not in ('"', "}"):
        return
    c.start(name)
    scanner = JsonScanner()
    scanner.feed("{", 0)
    c.end(complete=(yield from r.copy(scanner, c.arguments)))


def _name(r: Reader, c: Calls) -> Wait[str | None]:
    """A known name that something else than a letter of names follows."""
    yield from r.skip_space()
    start = r.at - r.held
    while _is_name_letter((yield from r.char())):
        r.at += 1
        part = r.text[r.held + start : r.at]
        if not any(one.startswith(part) for one in c.tools):
            return None
    name = r.text[r.held + start : r.at]
    if name not in c.tools:
        return None
    if (yield from r.expect(CALL_ID)):
        for _ in range(_ID_LETTERS):
            if not (yield from r.char()).isalnum():
                break
            r.at += 1
    yield from r.expect(ARGUMENTS)
    return name


def _is_name_letter(char: str) -> bool:
    return char.isalnum() or (char != "" and char in "_-.:/")


MISTRAL = Format(
    openers=(OPEN,),
    special=(OPEN, ARGUMENTS, CALL_ID),
    read=read,
    grammar=CallGrammar(
        triggers=(OPEN,),
        begin=OPEN + "[",
        open='{"name": "{name}", "arguments": ',
        close="}",
        separator=", ",
        end="]",
        special=(OPEN,),
    ),
)
# The same reading; a grammar writes what tokenizers from v11 on know.
MISTRAL_ARGS = Format(
    openers=MISTRAL.openers,
    special=MISTRAL.special,
    read=read,
    grammar=CallGrammar(
        triggers=(OPEN,),
        open=OPEN + "{name}" + ARGUMENTS,
        close="",
        special=(OPEN, ARGUMENTS),
    ),
)

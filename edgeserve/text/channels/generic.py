"""Any wrapper and payload that models are known to write, for models of which we know nothing.

Wrappers: tags, with or without the closing one, or none at the start of the answer. Payloads:
JSON objects and arrays, tags of calls, Python literals and Python calls, also in a code fence.
"""

from __future__ import annotations

import json

from edgeserve.text.channels import mistral
from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.coerce import literal_json
from edgeserve.text.channels.hermes import HERMES
from edgeserve.text.channels.json_call import Outcome, object_text, peek, read_payloads
from edgeserve.text.channels.python_call import read_call, read_list
from edgeserve.text.channels.python_text import ExpressionScanner
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import Format
from edgeserve.text.channels.xml_call import DIALECTS, read_functions

_TAGS = (
    *("tool_call", "tool_calls", "toolcall", "toolcalls", "TOOLCALL", "tools"),
    *("function_call", "function_calls", "atem:function_calls"),
)
CLOSERS = {f"<{tag}>": f"</{tag}>" for tag in _TAGS} | {
    "[TOOL_CALL]": "[/TOOL_CALL]",
    "[TOOL_CALLS]": "[/TOOL_CALLS]",
    "<|python_tag|>": "",
}
_BARE = tuple(dialect.call for dialect in DIALECTS)
_FENCE = "```"


def read(opener: str, r: Reader, c: Calls) -> Wait[None]:
    if opener in _BARE:
        r.at -= len(opener)
    before, closer = c.count, CLOSERS.get(opener, "")
    fenced = yield from r.expect(_FENCE)
    if fenced:
        yield from _skip_language(r)
    yield from _payload(r, c, "" if fenced else closer)
    if c.count == before:
        return
    if fenced and (yield from r.expect(_FENCE)):
        r.drop()
    if closer and (yield from r.expect(closer)):
        r.drop()


def _skip_language(r: Reader) -> Wait[None]:
    while (char := (yield from r.char())).isalnum() or char == "_":
        r.at += 1


def _payload(r: Reader, c: Calls, closer: str) -> Wait[None]:
    char = yield from peek(r)
    if char == "<":
        yield from read_functions(r, c, closer)
    elif char == "{":
        yield from _braces(r, c, closer)
    elif char == "[":
        yield from _brackets(r, c, closer)
    elif char.isidentifier():
        yield from _words(r, c)


def _braces(r: Reader, c: Calls, closer: str) -> Wait[None]:
    if (yield from _after_brackets(r)) == "'":
        yield from _literal(r, c)
    else:
        yield from read_payloads(r, c, closer)


def _brackets(r: Reader, c: Calls, closer: str) -> Wait[None]:
    if (yield from _after_brackets(r)).isidentifier():
        yield from r.skip_space()
        yield from read_list(r, c)
    else:
        yield from _braces(r, c, closer)


def _after_brackets(r: Reader) -> Wait[str]:
    """The first character that is neither bracket nor space; nothing is read."""
    back = r.at - r.held
    while (char := (yield from r.char())) and (char in "[{" or char.isspace()):
        r.at += 1
    r.at = r.held + back
    return char


def _words(r: Reader, c: Calls) -> Wait[None]:
    """`f(a=1)`, one after the other, or Mistral's NAME before JSON."""
    while (yield from peek(r)).isidentifier():
        back, before = r.at - r.held, c.count
        yield from r.skip_space()
        if (yield from read_call(r, c)) is Outcome.BROKEN:
            if c.count == before:
                r.at = r.held + back
                yield from mistral.read_named(r, c)
            return
        r.drop()


def _literal(r: Reader, c: Calls) -> Wait[None]:
    """A Python literal is told when it is whole: its quotes must be made JSON's."""
    yield from r.skip_space()
    scanner = ExpressionScanner(whole=True)
    if not (yield from r.scan(scanner)):
        return
    text = literal_json(scanner.take())
    value = json.loads(text) if text is not None else None
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    calls = [_call(one, c) for one in (value if isinstance(value, list) else [value])]
    known = [call for call in calls if call is not None]
    if not known or len(known) < len(calls):
        return
    for name, arguments in known:
        c.whole(name, arguments)


def _call(value: object, c: Calls) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(inner := value.get("function"), dict):
        value = inner
    name = value.get("name", value.get("function"))
    given = value.get("arguments", value.get("parameters"))
    arguments = object_text(json.dumps(given, ensure_ascii=False))
    if not isinstance(name, str) or name not in c.tools or arguments is None:
        return None
    return name, arguments


GENERIC = Format(
    openers=(*CLOSERS, *_BARE),
    starters="{[`",
    special=(*CLOSERS, *(one for one in CLOSERS.values() if one)),
    read=read,
    grammar=HERMES.grammar,
)

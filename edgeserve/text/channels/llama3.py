"""Llama 3.1 to 3.3: `{"name": "f", "parameters": {...}}` with or without `<|python_tag|>` before
it; several are separated by `; `. Without the tag a call stands at the start of the answer."""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.json_call import read_payloads
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import CallGrammar, Format

TAG = "<|python_tag|>"


def read(_opener: str, r: Reader, c: Calls) -> Wait[None]:
    while True:
        before = c.count
        yield from read_payloads(r, c)
        if c.count == before or not (yield from _another(r)):
            return


def _another(r: Reader) -> Wait[bool]:
    back = r.at - r.held
    if (yield from r.expect(";")) and (yield from r.expect("{")):
        r.at -= 1
        r.drop()
        return True
    r.at = r.held + back
    return False


LLAMA3 = Format(
    openers=(TAG,),
    starters="{",
    special=(TAG,),
    read=read,
    grammar=CallGrammar(
        triggers=(),  # without the tag, which many never write, a call begins like any JSON
        open='{"name": "{name}", "parameters": ',
        close="}",
        separator="; ",
    ),
)

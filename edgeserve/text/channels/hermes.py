"""Hermes 2 and 3, Qwen 2.5, Qwen 3 and many others:

<tool_call>
{"name": "f", "arguments": {"a": 1}}
</tool_call>
"""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.json_call import read_payloads
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import CallGrammar, Format

OPEN, CLOSE = "<tool_call>", "</tool_call>"


def read(_opener: str, r: Reader, c: Calls) -> Wait[None]:
    yield from read_payloads(r, c, CLOSE)


HERMES = Format(
    openers=(OPEN,),
    special=(OPEN, CLOSE),
    read=read,
    grammar=CallGrammar(
        triggers=(OPEN,),
        open=OPEN + '\n{"name": "{name}", "arguments": ',
        close="}\n" + CLOSE,
        separator="\n",
        special=(OPEN, CLOSE),
    ),
)

"""Llama 3.2 and 4, LFM2, ToolACE: `[f(a=1, b="x"), g()]`, at the start of the answer or between
`<|python_start|>` and `<|python_end|>`, `<|tool_call_start|>` and `<|tool_call_end|>`."""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.json_call import Outcome, peek
from edgeserve.text.channels.python_call import read_list
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import CallGrammar, Format, Slot

CLOSERS = {
    "<|python_start|>": "<|python_end|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
}


def read(opener: str, r: Reader, c: Calls) -> Wait[None]:
    if (yield from peek(r)) != "[":
        return
    yield from r.skip_space()
    outcome = yield from read_list(r, c)
    closer = CLOSERS.get(opener)
    if outcome is Outcome.CALLED and closer and (yield from r.expect(closer)):
        r.drop()


PYTHONIC = Format(
    openers=tuple(CLOSERS),
    starters="[",
    special=(*CLOSERS, *CLOSERS.values()),
    read=read,
    grammar=CallGrammar(
        triggers=(),
        begin="[",
        open="{name}(",
        slot=Slot.PYTHON,
        close=")",
        separator=", ",
        end="]",
    ),
)

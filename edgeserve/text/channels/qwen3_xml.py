"""Qwen3-Coder, Qwen 3.5 and Nemotron 3:

    <tool_call>
    <function=f>
    <parameter=a>
    1
    </parameter>
    </function>
    </tool_call>

The outer tags are left out by some; several functions may share them.
"""

from __future__ import annotations

from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import CallGrammar, Format, Slot
from edgeserve.text.channels.xml_call import FUNCTION, read_functions

OPEN, CLOSE = "<tool_call>", "</tool_call>"


def read(opener: str, r: Reader, c: Calls) -> Wait[None]:
    if opener == FUNCTION.call:
        r.at -= len(opener)
    yield from read_functions(r, c, CLOSE)


QWEN3_XML = Format(
    openers=(OPEN, FUNCTION.call),
    special=(OPEN, CLOSE),
    read=read,
    grammar=CallGrammar(
        triggers=(OPEN,),
        open=OPEN + "\n<function={name}>\n",
        slot=Slot.XML,
        close="</function>\n" + CLOSE,
        separator="\n",
        parameter_open="<parameter={name}>\n",
        parameter_close="\n</parameter>\n",
        special=(OPEN, CLOSE),
    ),
)

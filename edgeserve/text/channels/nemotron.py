"""Nemotron Nano 2 and kin: `<TOOLCALL>[{"name": "f", "arguments": {...}}, ...]</TOOLCALL>`.
Nemotron 3 writes the tags of `qwen3_xml`, which are read as well."""

from __future__ import annotations

from edgeserve.text.channels import qwen3_xml
from edgeserve.text.channels.calls import Calls
from edgeserve.text.channels.json_call import read_payloads
from edgeserve.text.channels.reader import Reader, Wait
from edgeserve.text.channels.wire import CallGrammar, Format

OPEN, CLOSE = "<TOOLCALL>", "</TOOLCALL>"


def read(opener: str, r: Reader, c: Calls) -> Wait[None]:
    if opener == OPEN:
        yield from read_payloads(r, c, CLOSE)
    else:
        yield from qwen3_xml.read(opener, r, c)


NEMOTRON = Format(
    openers=(OPEN, *qwen3_xml.QWEN3_XML.openers),
    special=(OPEN, CLOSE, *qwen3_xml.QWEN3_XML.special),
    read=read,
    grammar=CallGrammar(
        triggers=(OPEN,),
        begin=OPEN + "[",
        open='{"name": "{name}", "arguments": ',
        close="}",
        separator=", ",
        end="]" + CLOSE,
        special=(OPEN, CLOSE),
    ),
)

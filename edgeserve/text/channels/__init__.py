"""Channels: an answer's text as content, reasoning and tool calls, read as it is made.

The way of a piece: `Channels.feed` -> `Reader` -> one parser (`Splitter` for formats whose calls
stand in the text, `Harmony` for gpt-oss) -> deltas. One file per wire format; the registry names
them. For structured output each format describes its calls as data: `CallGrammar` in wire.py says
how a guide makes a grammar of it, `call_grammar(name)` gets it.

What holds for every format: the result does not depend on how the text was cut; only text that
can still become markup is withheld, and a call is told when its name and the beginning of its
arguments are known; until then a block that breaks off, goes wrong or names no known tool is
content, all of it. A call once told stays told: when its arguments break, `CallEnd.complete` is
false and the rest is content.
"""

from edgeserve.text.channels.calls import Tools, tool_schemas
from edgeserve.text.channels.channels import Channels, Parsers
from edgeserve.text.channels.delta import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Delta,
    End,
    Reasoning,
)
from edgeserve.text.channels.registry import (
    ALIASES,
    REASONING_PARSERS,
    TOOL_PARSERS,
    call_grammar,
    reasoning_parser,
    tool_parser,
)
from edgeserve.text.channels.think import Thoughts
from edgeserve.text.channels.wire import CallGrammar, Slot

__all__ = [
    "ALIASES",
    "REASONING_PARSERS",
    "TOOL_PARSERS",
    "CallArguments",
    "CallEnd",
    "CallGrammar",
    "CallStart",
    "Channels",
    "Content",
    "Delta",
    "End",
    "Parsers",
    "Reasoning",
    "Slot",
    "Thoughts",
    "Tools",
    "call_grammar",
    "reasoning_parser",
    "tool_parser",
    "tool_schemas",
]

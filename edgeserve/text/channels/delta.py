"""What the channels of an answer gain: plain data, the same whether streamed or whole.

Folding the deltas of one choice in order gives the whole answer: `Content` and `Reasoning` texts
are joined, `CallArguments` are joined per index.
"""

from __future__ import annotations

import msgspec

from edgeserve.generation import Finish


class Content(msgspec.Struct, frozen=True, tag="content"):
    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    text: str


class CallStart(msgspec.Struct, frozen=True, tag="call_start"):
    """A call of a tool that the request knows. Its arguments follow before any other call."""

    index: int  # from 0, without gaps
    id: str  # unique over calls and turns
    name: str


class CallArguments(msgspec.Struct, frozen=True, tag="call_arguments"):
    """More of the JSON text of the arguments."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True, tag="call_end"):
    """The call gains nothing more. `complete`: its arguments are a whole JSON object; false when
    the text broke off or went wrong after the call had been told."""

    index: int
    complete: bool


class End(msgspec.Struct, frozen=True, tag="end"):
    """The last delta of a choice."""

    finish: Finish
    calls: int  # told in all; more than 0 makes the finish reason `tool_calls` on a stop


Delta = Content | Reasoning | CallStart | CallArguments | CallEnd | End


def joined(before: Delta, after: Delta) -> Delta | None:
    """Both as one delta, when they continue the same text."""
    if isinstance(before, Content) and isinstance(after, Content):
        return Content(before.text + after.text)
    if isinstance(before, Reasoning) and isinstance(after, Reasoning):
        return Reasoning(before.text + after.text)
    if isinstance(before, CallArguments) and isinstance(after, CallArguments):
        return CallArguments(before.index, before.text + after.text)
    return None

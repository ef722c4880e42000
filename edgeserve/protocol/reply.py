"""One answer as bytes: streamed frame by frame, or folded from the same chunks into one body.

A `Wire` is the form of one API. This file is the only place that walks an answer for HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from edgeserve.errors import ErrorInfo
from edgeserve.generation import Finish, Usage
from edgeserve.pipeline.answer import Answer
from edgeserve.pipeline.best import Best
from edgeserve.protocol.chunk import Chunk, Chunks, Told
from edgeserve.text.channels import CallStart


class FoldedCall(msgspec.Struct):
    """A tool call; its arguments, joined, are the text of a JSON object."""

    id: str
    name: str
    arguments: list[str] = msgspec.field(default_factory=list)


class Folded(msgspec.Struct):
    """The chunks of one choice, put together."""

    text: list[str] = msgspec.field(default_factory=list)
    reasoning: list[str] = msgspec.field(default_factory=list)
    calls: list[FoldedCall] = msgspec.field(default_factory=list)
    logprobs: list[Told] = msgspec.field(default_factory=list)
    finish: Finish | None = None

    def add(self, chunk: Chunk) -> None:
        self.text.append(chunk.text)
        self.reasoning.append(chunk.reasoning)
        if isinstance(chunk.call, CallStart):
            self.calls.append(FoldedCall(chunk.call.id, chunk.call.name))
        elif chunk.call is not None:
            self.calls[chunk.call.index].arguments.append(chunk.call.text)
        self.logprobs.extend(chunk.logprobs)
        self.finish = chunk.finish or self.finish


class Wire(Protocol):
    """How one API writes chunks. Frames are whole SSE events, one or several joined."""

    def opening(self, choices: int) -> bytes: ...

    def frame(self, chunk: Chunk, completion_tokens: int) -> bytes: ...

    def closing(self, usage: Usage) -> bytes: ...

    def failed(self, error: ErrorInfo) -> bytes: ...

    def whole(self, choices: list[Folded], usage: Usage) -> bytes: ...


async def frames(answer: Answer, chunks: Chunks, wire: Wire) -> AsyncIterator[bytes]:
    """The whole stream. Raises what broke the answer; the caller ends the stream with
    `wire.failed`."""
    if opening := wire.opening(answer.choices):
        yield opening
    async for piece in answer:
        told = chunks.feed(piece)
        if told:
            yield b"".join([wire.frame(chunk, chunks.completion_tokens) for chunk in told])
    yield wire.closing(answer.usage)


async def whole(answer: Answer, chunks: Chunks, wire: Wire) -> bytes:
    """The body of the answer. Raises what broke it."""
    choices = [Folded() for _ in range(answer.choices)]
    best = Best(answer)
    async for piece in answer:
        best.note(piece)
        for chunk in chunks.feed(piece):
            choices[chunk.choice].add(chunk)
    return wire.whole([choices[number] for number in best.kept()], answer.usage)

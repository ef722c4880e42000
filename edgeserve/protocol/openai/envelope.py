"""What surrounds every chunk and answer of OpenAI's: id, time, model, usage.

PERF: a chunk is a constant head, one JSON string and a constant tail, joined; encoding the whole
object for each chunk costs five times as much.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

import msgspec
import orjson

from edgeserve.generation import Finish, Usage
from edgeserve.pipeline.answer import Answer
from edgeserve.protocol.openai.error import DONE
from edgeserve.protocol.openai.request import Usage as UsageWish
from edgeserve.protocol.openai.usage import usage_object

FINISH = {Finish.STOP: "stop", Finish.LENGTH: "length"}


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an answer that its chunks share."""

    prefix: str  # of the id: chatcmpl- or cmpl-
    chunk_object: str
    whole_object: str
    model: str  # as the client asked
    fingerprint: str
    usage: UsageWish
    answer: Answer

    def fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.prefix + secrets.token_hex(16),
            "object": kind,
            "created": int(time.time()),
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def head(self) -> bytes:
        """`data: {..., "choices":[`, the same for every chunk of one stream."""
        return b"data: " + orjson.dumps(self.fields(self.chunk_object))[:-1] + b',"choices":['

    def tail(self, completion_tokens: int) -> bytes:
        """What follows the choice of a chunk."""
        if self.usage.every:
            usage = usage_object(
                self.answer.prompt_tokens,
                completion_tokens,
                self.answer.cached_tokens,
                self.answer.reasoning_tokens,
            )
            return b'],"usage":' + orjson.dumps(usage) + b"}\n\n"
        return b'],"usage":null}\n\n' if self.usage.last else b"]}\n\n"

    def closing(self, head: bytes, usage: Usage) -> bytes:
        if not self.usage.last:
            return DONE
        return head + b'],"usage":' + orjson.dumps(self._totals(usage)) + b"}\n\n" + DONE

    def whole(self, choices: list[dict[str, Any]], usage: Usage, **more: Any) -> bytes:
        fields = self.fields(self.whole_object)
        return orjson.dumps({**fields, "choices": choices, "usage": self._totals(usage), **more})

    def _totals(self, usage: Usage) -> dict[str, Any]:
        return usage_object(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cached_tokens,
            self.answer.reasoning_tokens,
        )

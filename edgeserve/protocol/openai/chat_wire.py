"""Chunks as `chat.completion.chunk` events and as one `chat.completion`."""

from __future__ import annotations

from typing import Any

import orjson

from edgeserve.errors import ErrorInfo
from edgeserve.generation import Finish, Usage
from edgeserve.pipeline.answer import Answer
from edgeserve.protocol.chunk import Chunk
from edgeserve.protocol.openai.chat import ChatRequest
from edgeserve.protocol.openai.envelope import FINISH, Envelope
from edgeserve.protocol.openai.error import error_event
from edgeserve.protocol.openai.logprobs import chat_logprobs
from edgeserve.protocol.openai.prompt_logprobs import PromptTold
from edgeserve.protocol.reply import Folded
from edgeserve.protocol.vocabulary import Vocabulary
from edgeserve.text.channels import CallStart


class ChatWire:
    """`vocabulary` is given when logprobs were asked for."""

    def __init__(
        self,
        request: ChatRequest,
        answer: Answer,
        vocabulary: Vocabulary | None,
        prompt: PromptTold | None = None,
        *,
        model: str,
        fingerprint: str,
    ) -> None:
        self._vocabulary = vocabulary
        self._prompt = prompt
        self._envelope = Envelope(
            prefix="chatcmpl-",
            chunk_object="chat.completion.chunk",
            whole_object="chat.completion",
            model=model,
            fingerprint=fingerprint,
            usage=request.usage,
            answer=answer,
        )
        self._head = self._envelope.head()
        self._text_heads = [
            b'%b{"index":%d,"delta":{"content":' % (self._head, i) for i in range(answer.choices)
        ]
        # An answer that may call tools may have no content at all.
        self._no_content = b"null" if request.tools else b'""'

    def opening(self, choices: int) -> bytes:
        delta = (
            b',"delta":{"role":"assistant","content":%b},"logprobs":null,"finish_reason":null}'
            % self._no_content
        )
        tail = self._envelope.tail(0)
        return b"".join(
            b'%b{"index":%d%b%b' % (self._head, choice, delta, tail) for choice in range(choices)
        )

    def frame(self, chunk: Chunk, completion_tokens: int) -> bytes:
        tail = self._envelope.tail(completion_tokens)
        if chunk.finish is not None:
            if self._prompt is not None and chunk.choice == 0:
                tail = b'],"prompt_logprobs":' + self._prompt.json(0) + tail[1:]
            return b'%b{"index":%d,"delta":{},"logprobs":null,"finish_reason":"%b"}%b' % (
                self._head,
                chunk.choice,
                (finish_reason(chunk.finish, chunk.has_called) or "").encode(),
                tail,
            )
        logprobs = b"null"
        if chunk.logprobs and self._vocabulary is not None:
            logprobs = orjson.dumps(chat_logprobs(chunk.logprobs, self._vocabulary))
        if chunk.text:
            told = self._text_heads[chunk.choice] + orjson.dumps(chunk.text) + b"}"
        else:
            delta = orjson.dumps(other_delta(chunk))
            told = b'%b{"index":%d,"delta":%b' % (self._head, chunk.choice, delta)
        return b'%b,"logprobs":%b,"finish_reason":null}%b' % (told, logprobs, tail)

    def closing(self, usage: Usage) -> bytes:
        return self._envelope.closing(self._head, usage)

    def failed(self, error: ErrorInfo) -> bytes:
        return error_event(error)

    def whole(self, choices: list[Folded], usage: Usage) -> bytes:
        told = [self._choice(i, one) for i, one in enumerate(choices)]
        if self._prompt is None:
            return self._envelope.whole(told, usage)
        return self._envelope.whole(told, usage, prompt_logprobs=self._prompt.of(0))

    def _choice(self, index: int, folded: Folded) -> dict[str, Any]:
        logprobs = None
        if self._vocabulary is not None:
            logprobs = chat_logprobs(folded.logprobs, self._vocabulary)
        return {
            "index": index,
            "message": message_of(folded),
            "logprobs": logprobs,
            "finish_reason": finish_reason(folded.finish, bool(folded.calls)),
        }


def other_delta(chunk: Chunk) -> dict[str, Any]:
    """The delta of a chunk without content."""
    call = chunk.call
    if isinstance(call, CallStart):
        function = {"name": call.name, "arguments": ""}
        told = {"index": call.index, "id": call.id, "type": "function", "function": function}
        return {"tool_calls": [told]}
    if call is not None:
        return {"tool_calls": [{"index": call.index, "function": {"arguments": call.text}}]}
    return {"reasoning_content": chunk.reasoning} if chunk.reasoning else {}


def message_of(folded: Folded) -> dict[str, Any]:
    """The whole message: content is null when the answer is calls alone."""
    text, reasoning = "".join(folded.text), "".join(folded.reasoning)
    content = None if folded.calls and not text else text
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if folded.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(call.arguments)},
            }
            for call in folded.calls
        ]
    return message


def finish_reason(finish: Finish | None, has_called: bool) -> str | None:
    """A limit is told also after calls: the last one may be cut."""
    if has_called and finish is Finish.STOP:
        return "tool_calls"
    return FINISH[finish] if finish else None

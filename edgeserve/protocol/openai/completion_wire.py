"""Chunks as `text_completion` events and as one `text_completion`."""

from __future__ import annotations

from typing import Any

import orjson

from edgeserve.errors import ErrorInfo
from edgeserve.generation import Usage
from edgeserve.pipeline.answer import Answer
from edgeserve.protocol.chunk import Chunk
from edgeserve.protocol.openai.completion import CompletionRequest
from edgeserve.protocol.openai.envelope import FINISH, Envelope
from edgeserve.protocol.openai.error import error_event
from edgeserve.protocol.openai.logprobs import completion_logprobs
from edgeserve.protocol.openai.prompt_logprobs import PromptTold
from edgeserve.protocol.reply import Folded
from edgeserve.protocol.vocabulary import Vocabulary


class CompletionWire:
    """`vocabulary` is given when logprobs were asked for."""

    def __init__(
        self,
        request: CompletionRequest,
        answer: Answer,
        vocabulary: Vocabulary | None,
        prompt: PromptTold | None = None,
        *,
        model: str,
        fingerprint: str,
    ) -> None:
        self._vocabulary = vocabulary
        self._prompt = prompt
        self._answer = answer
        self._envelope = Envelope(
            prefix="cmpl-",
            chunk_object="text_completion",
            whole_object="text_completion",
            model=model,
            fingerprint=fingerprint,
            usage=request.usage,
            answer=answer,
        )
        self._head = self._envelope.head()

    def opening(self, choices: int) -> bytes:  # noqa: ARG002
        return b""

    def frame(self, chunk: Chunk, completion_tokens: int) -> bytes:
        finish = b'"%b"' % FINISH[chunk.finish].encode() if chunk.finish else b"null"
        logprobs = b"null"
        if chunk.logprobs and self._vocabulary is not None:
            logprobs = orjson.dumps(completion_logprobs(chunk.logprobs, self._vocabulary))
        prompt = b""
        if chunk.finish and self._prompt is not None:
            index = chunk.choice // self._answer.drawn
            prompt = b',"prompt_logprobs":' + self._prompt.json(index)
        return b'%b{"index":%d,"text":%b,"logprobs":%b,"finish_reason":%b%b}%b' % (
            self._head,
            chunk.choice,
            orjson.dumps(chunk.text),
            logprobs,
            finish,
            prompt,
            self._envelope.tail(completion_tokens),
        )

    def closing(self, usage: Usage) -> bytes:
        return self._envelope.closing(self._head, usage)

    def failed(self, error: ErrorInfo) -> bytes:
        return error_event(error)

    def whole(self, choices: list[Folded], usage: Usage) -> bytes:
        return self._envelope.whole([self._choice(i, one) for i, one in enumerate(choices)], usage)

    def _choice(self, index: int, folded: Folded) -> dict[str, Any]:
        logprobs = None
        if self._vocabulary is not None:
            logprobs = completion_logprobs(folded.logprobs, self._vocabulary)
        told = {
            "index": index,
            "text": "".join(folded.text),
            "logprobs": logprobs,
            "finish_reason": FINISH[folded.finish] if folded.finish else None,
        }
        if self._prompt is not None:
            told["prompt_logprobs"] = self._prompt.of(index // self._answer.kept)
        return told

"""The bodies of answers as types, for the published description of the API. The wires write the
same by hand, for speed; a test holds what they write against these.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all bodies share: no field that is not described."""


class CachedTokens(Answer, frozen=True, kw_only=True):
    cached_tokens: int


class ReasoningTokens(Answer, frozen=True, kw_only=True):
    reasoning_tokens: int


class UsageCounts(Answer, frozen=True, kw_only=True):
    """True counts of the engine."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens
    completion_tokens_details: ReasoningTokens


class TopLogprob(Answer, frozen=True, kw_only=True):
    token: str
    logprob: float
    bytes: list[int]


class ChatLogprob(TopLogprob, frozen=True, kw_only=True):
    top_logprobs: list[TopLogprob]


class ChatLogprobs(Answer, frozen=True, kw_only=True):
    content: list[ChatLogprob]
    refusal: None


class CompletionLogprobs(Answer, frozen=True, kw_only=True):
    """Null for the first token of an echoed prompt."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class PromptToken(Answer, frozen=True, kw_only=True):
    logprob: float
    rank: int | None
    decoded_token: str


PromptLogprobs = list[dict[str, PromptToken] | None]
FinishReason = Literal["stop", "length"]
ChatFinishReason = Literal["stop", "length", "tool_calls"]


class Completed(Answer, frozen=True, kw_only=True):
    id: str
    created: int
    model: str
    system_fingerprint: str


class CalledFunction(Answer, frozen=True, kw_only=True):
    name: str
    arguments: str


class ToolCall(Answer, frozen=True, kw_only=True):
    id: str
    type: Literal["function"]
    function: CalledFunction


class AnswerMessage(Answer, frozen=True, kw_only=True):
    """The content is null when the answer is calls alone."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET


class ChatChoice(Answer, frozen=True, kw_only=True):
    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: ChatFinishReason


class ChatCompletion(Completed, frozen=True, kw_only=True):
    object: Literal["chat.completion"]
    choices: list[ChatChoice]
    usage: UsageCounts
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET


class FunctionDelta(Answer, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    arguments: str


class ToolCallDelta(Answer, frozen=True, kw_only=True):
    """The first of a call has its id and name, the others more of its arguments."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionDelta


class Delta(Answer, frozen=True, kw_only=True):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallDelta] | UnsetType = UNSET


class ChatChunkChoice(Answer, frozen=True, kw_only=True):
    index: int
    delta: Delta
    logprobs: ChatLogprobs | None
    finish_reason: ChatFinishReason | None


class ChatChunk(Completed, frozen=True, kw_only=True):
    """One event of a stream."""

    object: Literal["chat.completion.chunk"]
    choices: list[ChatChunkChoice]
    usage: UsageCounts | UnsetType | None = UNSET
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET


class TextChoice(Answer, frozen=True, kw_only=True):
    """Also of one event of a stream, where `finish_reason` is null until the end."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason | None
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET


class TextCompletion(Completed, frozen=True, kw_only=True):
    """A whole answer, or one event of a stream."""

    object: Literal["text_completion"]
    choices: list[TextChoice]
    usage: UsageCounts | UnsetType | None = UNSET


class TokenPiece(Answer, frozen=True, kw_only=True):
    id: int
    piece: str | list[int]


class Tokenized(Answer, frozen=True, kw_only=True):
    count: int
    max_model_len: int
    tokens: list[int | TokenPiece]
    token_strs: list[str] | None


class Detokenized(Answer, frozen=True, kw_only=True):
    prompt: str
    content: str


class ErrorDetail(Answer, frozen=True, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str


class ErrorBody(Answer, frozen=True, kw_only=True):
    error: ErrorDetail

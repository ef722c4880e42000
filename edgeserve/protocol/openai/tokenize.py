"""`POST /tokenize` and `/detokenize`: bodies and answers in the shapes of vLLM and of llama.cpp.

vLLM sends `prompt` or `messages`, llama.cpp `content`. One answer has what both expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from edgeserve.errors import InvalidRequest, MissingField, UnsupportedFeature
from edgeserve.pipeline.call import Chat
from edgeserve.pipeline.tools import offered
from edgeserve.protocol.body import Body
from edgeserve.protocol.openai.chat import Message, conversation
from edgeserve.protocol.vocabulary import Vocabulary
from edgeserve.sampling import SamplingParams


class TokenizeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exactly one of `prompt`, `content` and `messages`."""

    model: str | None = None
    prompt: str | None = None
    content: str | None = None
    messages: list[Message] | None = None
    add_special_tokens: bool | None = None  # default: as when it is generated from
    add_special: bool | None = None  # llama.cpp's name
    parse_special: bool | None = None
    return_token_strs: bool | None = None
    with_pieces: bool | None = None
    documents: list[dict[str, Any]] | None = None
    apply_chat_template: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    tools: list[dict[str, Any]] | None = None


class DetokenizeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: str | None = None
    tokens: list[int]


OF_CHAT = (
    "tools",
    "documents",
    "apply_chat_template",
    "add_generation_prompt",
    "continue_final_message",
    "chat_template_kwargs",
    "enable_thinking",
    "reasoning_effort",
)
SOURCES = ("prompt", "content", "messages")

read_tokenize = Body(TokenizeRequest).read
read_detokenize = Body(DetokenizeRequest).read


class Tokenizing(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be turned into tokens, whoever's words asked for it."""

    prompt: Chat | str
    params: SamplingParams
    special: bool  # with what the tokenizer's own post-processor adds


def tokenizing(request: TokenizeRequest) -> Tokenizing:
    """What the request means. Raises `InvalidRequest` naming the field."""
    given = [name for name in SOURCES if getattr(request, name) is not None]
    if not given:
        raise MissingField("prompt")
    if len(given) > 1:
        raise InvalidRequest(f"'{given[0]}' and '{given[1]}': send one of them", param=given[1])
    if request.parse_special is False:
        raise UnsupportedFeature(
            "special tokens in a text are always recognised; leave 'parse_special' out",
            param="parse_special",
        )
    if request.messages is None:
        return _text(request)
    params = SamplingParams(
        chat_template_kwargs=request.chat_template_kwargs,
        enable_thinking=request.enable_thinking,
        reasoning_effort=request.reasoning_effort,
    )
    special = _special(request, default=request.apply_chat_template is False)
    return Tokenizing(
        prompt=conversation(request, offered(request.tools)), params=params, special=special
    )


def _text(request: TokenizeRequest) -> Tokenizing:
    for name in OF_CHAT:
        if getattr(request, name) is not None:
            raise InvalidRequest(f"'{name}' is for 'messages'; leave it out", param=name)
    prompt = request.prompt
    special = _special(request, default=prompt is not None)
    text = prompt if prompt is not None else request.content
    assert text is not None
    return Tokenizing(prompt=text, params=SamplingParams(), special=special)


def _special(request: TokenizeRequest, *, default: bool) -> bool:
    ours, theirs = request.add_special_tokens, request.add_special
    if ours is not None and theirs is not None and ours != theirs:
        raise InvalidRequest(
            "'add_special_tokens' and 'add_special' differ; send one of them", param="add_special"
        )
    return next((wish for wish in (ours, theirs) if wish is not None), default)


def tokenized(
    request: TokenizeRequest, ids: Sequence[int], names: Vocabulary | None, *, max_model_len: int
) -> bytes:
    """`names` is given when strings or pieces were asked for."""
    tokens: list[Any] = list(ids)
    body: dict[str, Any] = {"count": len(ids), "max_model_len": max_model_len, "tokens": tokens}
    body["token_strs"] = None
    if names is not None and request.return_token_strs:
        body["token_strs"] = [names.name(token) for token in ids]
    if names is not None and request.with_pieces:
        body["tokens"] = [{"id": token, "piece": _piece(names.raw(token))} for token in ids]
    return orjson.dumps(body)


def _piece(raw: bytes) -> str | list[int]:
    """Text, or the bytes of a token that is no whole text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return list(raw)


def detokenized(text: str) -> bytes:
    return orjson.dumps({"prompt": text, "content": text})

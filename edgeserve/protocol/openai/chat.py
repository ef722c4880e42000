"""`POST /v1/chat/completions`: the accepted body, and the call it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from edgeserve.errors import InvalidRequest
from edgeserve.pipeline.call import Call, Chat
from edgeserve.pipeline.messages import content_text, template_role
from edgeserve.pipeline.tools import is_named, must_call, offered
from edgeserve.protocol.body import Body
from edgeserve.protocol.openai.history import History
from edgeserve.protocol.openai.later import refuse_later
from edgeserve.protocol.openai.request import Request, check_shared, sampling


class Part(msgspec.Struct, frozen=True):
    """A part of a message's content. Keys beside these (`cache_control`) are ignored."""

    type: str
    text: str | None = None


class Message(msgspec.Struct, frozen=True):
    """Clients send assistant messages back as they got them: unknown keys are ignored."""

    role: str
    content: str | list[str | Part] | None = None
    tool_calls: Any = None
    function_call: Any = None  # the older name of one call
    tool_call_id: Any = None
    name: Any = None
    reasoning_content: Any = None
    reasoning: Any = None


class ChatRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    messages: list[Message]
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    documents: list[dict[str, Any]] | None = None
    apply_chat_template: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    thinking_budget: int | None = None


TEMPLATE_OPTIONS = (
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "chat_template_kwargs",
    "enable_thinking",
    "reasoning_effort",
    "thinking_budget",
)

read_chat = Body(ChatRequest).read


def chat_call(request: ChatRequest) -> Call:
    """The call that the request means. Raises `InvalidRequest` naming the field."""
    check_shared(request)
    refuse_later(request)
    params = sampling(
        request,
        max_completion_tokens=request.max_completion_tokens,
        logprobs=request.logprobs,
        top_logprobs=request.top_logprobs,
        chat_template_kwargs=request.chat_template_kwargs,
        enable_thinking=request.enable_thinking,
        reasoning_effort=request.reasoning_effort,
        thinking_budget=request.thinking_budget,
    )
    return Call(
        prompts=(conversation(request, offered(request.tools, request.tool_choice)),),
        params=params,
        must_call=must_call(request.tool_choice),
        parallel_tool_calls=request.parallel_tool_calls is not False
        and not is_named(request.tool_choice),
        priority=request.priority or 0,
        cache_salt=request.cache_salt or "",
    )


class Templated(Protocol):
    """What a body says of the conversation and its way through the template."""

    @property
    def messages(self) -> list[Message] | None: ...
    @property
    def documents(self) -> list[dict[str, Any]] | None: ...
    @property
    def apply_chat_template(self) -> bool | None: ...
    @property
    def add_generation_prompt(self) -> bool | None: ...
    @property
    def continue_final_message(self) -> bool | None: ...


def conversation(request: Templated, tools: Sequence[Mapping[str, Any]] = ()) -> Chat:
    """The checked messages. A turn is opened for the answer, unless the last message is to be
    continued."""
    if not request.messages:
        raise InvalidRequest("'messages' must have at least 1 item", param="messages")
    if request.apply_chat_template is False:
        _refuse_template_options(request)
    opens = request.add_generation_prompt
    continues = bool(request.continue_final_message)
    if opens and continues:
        raise InvalidRequest(
            "'continue_final_message' and 'add_generation_prompt' exclude each other; set one",
            param="continue_final_message",
        )
    history = History()
    return Chat(
        messages=[
            _message(one, f"messages[{i}]", history) for i, one in enumerate(request.messages)
        ],
        tools=tools or None,
        documents=request.documents,
        apply_chat_template=request.apply_chat_template is not False,
        add_generation_prompt=not continues if opens is None else opens,
        continue_final_message=continues,
    )


def _refuse_template_options(request: Templated) -> None:
    """Without a template its options would say nothing."""
    for name in TEMPLATE_OPTIONS:
        if getattr(request, name, None):
            raise InvalidRequest(
                f"'{name}' is for the chat template, which 'apply_chat_template': false leaves "
                "out; send one of them",
                param=name,
            )


def _message(message: Message, path: str, history: History) -> dict[str, Any]:
    role = template_role(message.role, path)
    content: Any = message.content
    if isinstance(content, list):
        content = [
            msgspec.structs.asdict(part) if isinstance(part, Part) else part for part in content
        ]
    told = {"role": role, "content": content_text(message.role, content, f"{path}.content")}
    if role == "assistant":
        return {**told, **history.assistant(message, path)}
    return {**told, **history.result(message, path)} if role == "tool" else told

"""What a caller of the Python API gives as prompts, as the prompts of a `Call`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edgeserve.errors import InvalidRequest
from edgeserve.pipeline.call import Chat, Prompt
from edgeserve.pipeline.messages import checked

WRONG = "a prompt is a text, a list of messages or a list of token ids"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """How the chat template is asked for, and how the answer is read. Texts are a user's turn when
    there is a template."""

    has_template: bool
    apply_chat_template: bool = True
    add_generation_prompt: bool | None = None  # unset: unless the last message is continued
    continue_final_message: bool = False
    documents: Sequence[Mapping[str, Any]] | None = None
    tools: Sequence[Mapping[str, Any]] = ()  # those that are offered
    must_call: bool = False
    parallel_tool_calls: bool = True
    tool_parser: str = "auto"
    reasoning_parser: str = "none"

    def __post_init__(self) -> None:
        if self.continue_final_message and self.add_generation_prompt:
            raise InvalidRequest(
                "continue_final_message and add_generation_prompt exclude each other; set one",
                param="continue_final_message",
            )
        if self.apply_chat_template:
            return
        for name in ("add_generation_prompt", "continue_final_message", "documents", "tools"):
            if getattr(self, name):
                raise InvalidRequest(
                    f"{name} is for the chat template, which apply_chat_template=False leaves out",
                    param=name,
                )

    def chat(self, messages: Sequence[Mapping[str, Any]]) -> Chat:
        opens = self.add_generation_prompt
        return Chat(
            messages=checked(messages),
            tools=self.tools or None,
            documents=self.documents,
            apply_chat_template=self.apply_chat_template,
            add_generation_prompt=not self.continue_final_message if opens is None else opens,
            continue_final_message=self.continue_final_message,
        )


RAW = Turn(has_template=False)


def prompts_of(given: object, turn: Turn) -> list[Prompt]:
    return [prompt_of(item, turn) for item in ([given] if _is_one(given) else _items(given))]


def prompt_of(item: Any, turn: Turn) -> Prompt:
    if isinstance(item, str):
        as_turn = turn.apply_chat_template and (turn.has_template or bool(turn.tools))
        return turn.chat([{"role": "user", "content": item}]) if as_turn else item
    if isinstance(item, Sequence) and item and all(isinstance(one, Mapping) for one in item):
        return turn.chat(item)
    if isinstance(item, bytes | bytearray):  # a sequence of numbers, but not of token ids
        raise TypeError(WRONG)
    if isinstance(item, Sequence) and all(type(one) is int for one in item):
        if turn.tools:
            raise InvalidRequest(
                "tools are for the chat template; token ids are used as they are", param="tools"
            )
        return tuple(item)
    raise TypeError(WRONG)


def _items(given: object) -> list[Any]:
    if not isinstance(given, Sequence):
        raise TypeError(WRONG)
    return list(given)


def _is_one(given: object) -> bool:
    """Whether this is one prompt: a text, a conversation or token ids; not a list of them."""
    if isinstance(given, str):
        return True
    return isinstance(given, Sequence) and bool(given) and isinstance(given[0], (Mapping, int))

"""The one internal request, whatever API it came through. Data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edgeserve.sampling import SamplingParams

COMPLETION_TOKENS = 16  # max_tokens of a completion that does not say; a chat runs to the end


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation for the model's chat template. Messages are plain dicts, as the template
    sees them; thinking and template options stand in `SamplingParams`."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None  # offered: shown, and may be called
    documents: Sequence[Mapping[str, Any]] | None = None
    apply_chat_template: bool = True  # False: the texts of the messages as they stand, joined
    add_generation_prompt: bool = True
    continue_final_message: bool = False


Prompt = Chat | str | tuple[int, ...]  # text and token ids are used as they are, no template


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asked: one prompt or several, and the wishes that all of them share."""

    prompts: tuple[Prompt, ...]
    params: SamplingParams = SamplingParams()
    default_max_tokens: int | None = None  # when params has none; None: to the context's end
    echo: bool = False  # the caller shows the prompt: Answer.prompt_texts is filled
    priority: int = 0  # lower is more urgent
    cache_salt: str = ""
    timeout_s: float | None = None
    must_call: bool = False  # the answer is calls and nothing else
    parallel_tool_calls: bool = True  # False: an answer has one call at most
    tool_parser: str | None = None  # instead of the model's
    reasoning_parser: str | None = None

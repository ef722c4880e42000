"""Fields that the API knows and this version does not carry out.

A value that asks for nothing (`tools: []`, `response_format: {"type": "text"}`) passes; any other
is a 400 that names the field, so no wish is ever dropped silently.
"""

from __future__ import annotations

from typing import Any

from edgeserve.errors import UnsupportedFeature
from edgeserve.protocol.openai.harmless import Harmless


class Later(Harmless, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    response_format: Any = None
    guided_decoding: Any = None
    structured_outputs: Any = None
    modalities: Any = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    documents: Any = None
    verbosity: Any = None
    reasoning: Any = None
    reasoning_effort: Any = None
    thinking_budget: Any = None
    enable_thinking: Any = None
    chat_template_kwargs: Any = None
    apply_chat_template: Any = None
    add_generation_prompt: Any = None
    continue_final_message: Any = None
    best_of: Any = None
    suffix: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    repetition_penalty: Any = None
    typical_p: Any = None
    logit_bias: Any = None
    bad_words: Any = None
    min_tokens: Any = None
    stop_token_ids: Any = None
    include_stop_str_in_output: Any = None
    skip_special_tokens: Any = None
    prompt_logprobs: Any = None


NOTHING: dict[str, tuple[Any, ...]] = {  # values that ask for nothing
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "guided_decoding": ({},),
    "structured_outputs": ({},),
    "modalities": (["text"], []),
    "documents": ([],),
    "reasoning_effort": ("none", "minimal"),
    "enable_thinking": (False,),
    "chat_template_kwargs": ({}, {"enable_thinking": False}),
    "apply_chat_template": (True,),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "best_of": (1,),
    "suffix": ("",),
    "frequency_penalty": (0, 0.0),
    "presence_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "typical_p": (1, 1.0),
    "logit_bias": ({},),
    "bad_words": ([],),
    "min_tokens": (0,),
    "stop_token_ids": ([],),
    "include_stop_str_in_output": (False,),
    "skip_special_tokens": (True,),
}
LATER = tuple(name for name in Later.__struct_fields__ if name not in Harmless.__struct_fields__)


def refuse_later(body: Later) -> None:
    for name in LATER:
        value = getattr(body, name)
        if value is not None and not _is_nothing(name, value):
            raise UnsupportedFeature(
                f"'{name}' is not supported by this version; leave it out", param=name
            )


def _is_nothing(name: str, value: object) -> bool:
    return any(
        value == nothing and isinstance(value, bool) is isinstance(nothing, bool)
        for nothing in NOTHING.get(name, ())
    )

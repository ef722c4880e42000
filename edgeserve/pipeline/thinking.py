"""How the answers of a call think: where reasoning begins and ends, its budget, and what their
guide waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from edgeserve.errors import InvalidRequest, UnsupportedFeature
from edgeserve.generation import ReasoningRules
from edgeserve.guide import Guide
from edgeserve.pipeline.call import Call, Chat, Prompt

if TYPE_CHECKING:
    from edgeserve.pipeline.prompt import Encoder, Tokens
    from edgeserve.pipeline.reading import Readers
    from edgeserve.text.channels import Thoughts
    from edgeserve.text.tokenizer import Tokenizer

BUDGET = "thinking_budget"
TAILS = ("", "\n", "\n\n")  # with what a tag that is several tokens may be written together


class Course(NamedTuple):
    """Of the answers to one prompt. Without `reasoning` all tokens are content to the engine."""

    guide: Guide | None
    reasoning: ReasoningRules | None


def courses(
    guide: Guide | None, call: Call, prompts: Sequence[Tokens], readers: Readers, encoder: Encoder
) -> list[Course]:
    """One per prompt. Raises `InvalidRequest` for a budget where nothing is thought."""
    return [
        _course(guide, call, readers, _thoughts(guide, call, prompt, tokens, readers, encoder))
        for prompt, tokens in zip(call.prompts, prompts, strict=True)
    ]


def _thoughts(
    guide: Guide | None,
    call: Call,
    prompt: Prompt,
    tokens: Tokens,
    readers: Readers,
    encoder: Encoder,
) -> Thoughts | None:
    has_budget = call.params.thinking_budget is not None
    found: Thoughts | None = None
    if isinstance(prompt, Chat) and prompt.apply_chat_template:
        if has_budget or guide is not None:
            readers.refuse_channels(call, BUDGET if has_budget else "response_format")
        thinks = encoder.thinks(call.params)
        found = readers.thoughts(call, prompt, tokens, thinks=thinks, always=has_budget)
    if has_budget and found is None:
        raise InvalidRequest(
            f"'{BUDGET}' is for answers that think, and this one does not; set 'enable_thinking' "
            "on a model that reasons, or leave it out",
            param=BUDGET,
        )
    return found


def _course(guide: Guide | None, call: Call, readers: Readers, thoughts: Thoughts | None) -> Course:
    if thoughts is None:
        return Course(guide, None)
    budget = call.params.thinking_budget
    tokenizer = readers.tokenizer
    if guide is None or thoughts.is_open:
        return Course(guide, rules(tokenizer, thoughts, budget))
    # The model opens its reasoning, or not: the guide waits for its end, whatever comes before.
    if budget is not None:
        raise UnsupportedFeature(
            f"this model opens its reasoning itself; then '{BUDGET}' does not go with what the "
            "answer must follow yet; send one of them",
            param=BUDGET,
        )
    mark = tokenizer.id_of(thoughts.tags.end)
    if mark is None:
        raise UnsupportedFeature(
            "no single token ends this model's reasoning, so no guide can follow it; switch "
            "thinking off",
            param="enable_thinking",
        )
    return Course(msgspec.structs.replace(guide, start_after=mark), None)


def rules(tokenizer: Tokenizer, thoughts: Thoughts, budget: int | None) -> ReasoningRules:
    ends = _marker(tokenizer, thoughts.tags.end)
    closing: tuple[int, ...] = ()
    if budget is not None:
        closing = tuple(tokenizer.encode(f"\n{thoughts.tags.end}\n\n", special=False))
        if not any(_holds(closing, end) for end in ends):
            closing = ends[-1]
    return ReasoningRules(
        starts_inside=thoughts.is_open,
        end_markers=ends,
        start_markers=() if thoughts.is_open else _marker(tokenizer, thoughts.tags.start),
        budget=budget,
        closing=closing,
    )


def _marker(tokenizer: Tokenizer, tag: str) -> tuple[tuple[int, ...], ...]:
    """The tokens that write a tag: one, or the ways to write it with what comes after it."""
    token = tokenizer.id_of(tag)
    if token is not None:
        return ((token,),)
    written = (tuple(tokenizer.encode(tag + tail, special=False)) for tail in TAILS)
    return tuple(dict.fromkeys(written))


def _holds(ids: tuple[int, ...], some: tuple[int, ...]) -> bool:
    return any(ids[i : i + len(some)] == some for i in range(len(ids)))

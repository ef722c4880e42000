"""How an answer is read: what each of its choices says, thinks and calls.

Prompts that went through the chat template are read by the parsers of the model, or by those that
the call names; of all others the text is content as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from edgeserve.errors import InvalidRequest, UnsupportedFeature
from edgeserve.generation import Piece
from edgeserve.pipeline.call import Call, Chat, Prompt
from edgeserve.text.channels import (
    ALIASES,
    REASONING_PARSERS,
    TOOL_PARSERS,
    CallArguments,
    CallEnd,
    CallGrammar,
    CallStart,
    Channels,
    Content,
    Delta,
    End,
    Parsers,
    Thoughts,
    reasoning_parser,
    tool_parser,
    tool_schemas,
)

if TYPE_CHECKING:
    from edgeserve.pipeline.prompt import Tokens
    from edgeserve.text.template import ChatTemplate
    from edgeserve.text.tokenizer import Tokenizer

AUTO, NONE = "auto", "none"


class Reading:
    """The channels of all choices of one answer."""

    def __init__(self, channels: Sequence[Channels | None], *, one_call: bool = False) -> None:
        """None: the text of that choice is content. `one_call`: further calls are left out."""
        self._channels = channels
        self._one_call = one_call

    def feed(self, piece: Piece) -> list[Delta]:
        """What the piece adds, `End` after the last one."""
        channels = self._channels[piece.choice]
        if channels is None:
            return as_content(piece)
        deltas = channels.feed(piece)
        return _first_call_only(deltas) if self._one_call else deltas

    @property
    def reasoning_tokens(self) -> int:
        return sum(one.reasoning_tokens for one in self._channels if one is not None)


def as_content(piece: Piece) -> list[Delta]:
    deltas: list[Delta] = [Content(piece.text)] if piece.text else []
    if piece.finish is not None:
        deltas.append(End(piece.finish, 0))
    return deltas


def _first_call_only(deltas: list[Delta]) -> list[Delta]:
    kept: list[Delta] = []
    for delta in deltas:
        if isinstance(delta, End):
            kept.append(msgspec.structs.replace(delta, calls=min(delta.calls, 1)))
        elif not (isinstance(delta, (CallStart, CallArguments, CallEnd)) and delta.index):
            kept.append(delta)
    return kept


class Readers:
    """The parsers of one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        *,
        model_type: str,
        tool: str = AUTO,
        reasoning: str = AUTO,
    ) -> None:
        """`tool` and `reasoning` are what its operator chose. Raises `BadConfig` for a name that
        is not known."""
        self.tokenizer = tokenizer
        self._own = (tool, reasoning)
        source = template.all_sources if template is not None else ""
        if template is not None and not template.takes_tools:
            model_type = ""  # then tools are shown in our words, not in those of its kind
        self._hints = {"model_type": model_type, "template": source}
        self._parsers = lru_cache(maxsize=64)(self._make)
        self._parsers(*self._own)

    def reading(self, call: Call, prompts: Sequence[Tokens]) -> Reading:
        """For the answer to a call whose prompts are these tokens."""
        own_tool, own_reasoning = self._own
        names = (call.tool_parser or own_tool, call.reasoning_parser or own_reasoning)
        _check(names[0], TOOL_PARSERS, "tool_parser")
        _check(names[1], REASONING_PARSERS, "reasoning_parser")
        parsers = self._parsers(*names)
        channels = [
            self._channels(prompt, tokens, parsers, call, reads_calls=names[0] != NONE)
            for prompt, tokens in zip(call.prompts, prompts, strict=True)
            for _ in range(call.params.drawn)
        ]
        return Reading(channels, one_call=not call.parallel_tool_calls)

    def call_grammar(self, call: Call) -> CallGrammar | None:
        """How the model writes calls; None when no guide can make it do so."""
        name = call.tool_parser or self._own[0]
        return None if name == NONE else self._of(call).call_grammar()

    def special_id(self, text: str) -> int | None:
        """The id of a text that is a special token."""
        token = self.tokenizer.id_of(text)
        return token if token in self.tokenizer.special_ids else None

    def refuse_channels(self, call: Call, param: str) -> None:
        """Raises `UnsupportedFeature` when the answers have channels: the engine sees none."""
        if self._of(call).has_channels:
            raise UnsupportedFeature(
                "the answers of this model have channels, which this does not go with yet",
                param=param,
            )

    def thoughts(
        self, call: Call, chat: Chat, tokens: Tokens, *, thinks: bool, always: bool
    ) -> Thoughts | None:
        """The reasoning of the answer to a chat; None when there is none. `thinks`: the template
        was asked for it. `always`: also for a call that leaves reasoning in the text."""
        parsers = self._of(call)
        if always and call.reasoning_parser == NONE:
            parsers = self._parsers(*self._own)
        return parsers.thoughts(tokens.text, _prefill(chat), thinks=thinks)

    def _of(self, call: Call) -> Parsers:
        tool, reasoning = self._own
        return self._parsers(call.tool_parser or tool, call.reasoning_parser or reasoning)

    def _channels(
        self, prompt: Prompt, tokens: Tokens, parsers: Parsers, call: Call, *, reads_calls: bool
    ) -> Channels | None:
        if not isinstance(prompt, Chat):
            return None
        tools = tool_schemas(prompt.tools or ()) if reads_calls else {}
        if not tools and not parsers.reads_all:
            return None
        return parsers.channels(
            prompt=tokens.text,
            tools=tools,
            prefill=_prefill(prompt),
            marks_only=call.params.skip_special_tokens is not False,
        )

    def _make(self, tool: str, reasoning: str) -> Parsers:
        return Parsers(
            tool_parser(AUTO if tool == NONE else tool, **self._hints),
            reasoning_parser(reasoning, **self._hints),
            self.tokenizer.id_of,
        )


def _check(name: str, parsers: Mapping[str, object], param: str) -> None:
    known = name in (AUTO, NONE) or ALIASES.get(name, name) in parsers
    if not known:
        raise InvalidRequest(
            f"{param} '{name}' is unknown; use one of {AUTO}, {NONE}, {', '.join(parsers)}",
            param=param,
        )


def check_names(tool: str, reasoning: str) -> None:
    """Raises `BadConfig` for a name of no parser."""
    tool_parser(AUTO if tool == NONE else tool)
    reasoning_parser(reasoning)


def _prefill(chat: Chat) -> str:
    """The text of the message that the answer goes on behind."""
    last = chat.messages[-1].get("content") if chat.continue_final_message else ""
    return last if isinstance(last, str) else ""

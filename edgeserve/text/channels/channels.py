"""The stage between pieces and protocol: what one choice says, thinks and calls.

`Parsers` is made once per model; `Channels` once per choice, by `Parsers.channels`. Text goes in
as the engine's pieces give it, special tokens by their marks or written out; deltas come out. The
deltas of a choice, folded, do not depend on how its text was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgeserve.generation import Finish, Piece
from edgeserve.text.channels.calls import Calls, Tools, call_id
from edgeserve.text.channels.delta import Content, Delta, End, Reasoning
from edgeserve.text.channels.harmony import Harmony, prompt_header
from edgeserve.text.channels.reader import Reader
from edgeserve.text.channels.registry import (
    HARMONY,
    REASONING_PARSERS,
    TOOL_PARSERS,
    call_grammar,
    special_texts,
)
from edgeserve.text.channels.splitter import Splitter
from edgeserve.text.channels.think import Thoughts
from edgeserve.text.channels.wire import CallGrammar, Slot


class Parsers:
    """The parsers of one model. Immutable."""

    def __init__(
        self, tool: str, reasoning: str, id_of: Callable[[str], int | None] = lambda _: None
    ) -> None:
        """`tool` and `reasoning` are names of the registry; `id_of` is the tokenizer's."""
        self.tool = tool
        self.reasoning = reasoning
        self._special = {
            calls: {
                id: text
                for text in special_texts(tool, reasoning, calls=calls)
                if (id := id_of(text)) is not None
            }
            for calls in (False, True)
        }
        tags = REASONING_PARSERS[reasoning]
        self._end_id = id_of(tags.end) if tags else None

    @property
    def reads_all(self) -> bool:
        """Whether an answer without calls has to be read too."""
        return self.reasoning != "none" or self.tool == HARMONY

    def call_grammar(self) -> CallGrammar | None:
        """How calls are written; None when no guide can enforce it."""
        if self.has_channels:
            return None
        grammar = call_grammar(self.tool)
        return None if grammar.slot is Slot.PYTHON else grammar

    @property
    def has_channels(self) -> bool:
        """Whether an answer names its channels itself, in place of tags."""
        return HARMONY in (self.tool, self.reasoning)

    def thoughts(self, prompt: str, prefill: str = "", *, thinks: bool) -> Thoughts | None:
        """The reasoning of the answer after `prompt`; None when there is none between tags.
        `thinks`: the template was asked for reasoning, which the model may open itself."""
        tags = REASONING_PARSERS[self.reasoning]
        if tags is None or self.has_channels:
            return None
        if tags.inside(prompt, prefill):
            return Thoughts(tags, is_open=True)
        if not thinks or prefill or prompt.rstrip().endswith(tags.end):
            return None
        return Thoughts(tags, is_open=False)

    def channels(
        self,
        *,
        prompt: str,
        tools: Tools,
        prefill: str = "",
        split_reasoning: bool = True,
        marks_only: bool = True,
        new_id: Callable[[], str] = call_id,
    ) -> Channels:
        """For one choice. `prompt`: the rendered prompt, or its end; `prefill`: the message at
        its end that is being continued. `tools`: those that may be called. `split_reasoning`
        false: thoughts are content, without tags. `marks_only`: special tokens give marks and no
        text (`skip_special_tokens`)."""
        reader = Reader()
        calls = Calls(tools, reader, new_id)
        parser: Splitter | Harmony
        if self.has_channels:
            parser = Harmony(reader, calls, header=prompt_header(prompt))
        else:
            tags = REASONING_PARSERS[self.reasoning]
            parser = Splitter(
                reader,
                calls,
                wire=TOOL_PARSERS[self.tool],
                tags=tags,
                inside=tags is not None and tags.inside(prompt, prefill),
            )
        return Channels(
            reader,
            calls,
            parser,
            special=self._special[bool(tools)] if marks_only else {},
            end_id=self._end_id,
            split_reasoning=split_reasoning and self.reasoning != "none",
        )


class Channels:
    """One choice, front to back."""

    def __init__(
        self,
        reader: Reader,
        calls: Calls,
        parser: Splitter | Harmony,
        *,
        special: Mapping[int, str],
        end_id: int | None,
        split_reasoning: bool,
    ) -> None:
        self._reader = reader
        self._calls = calls
        self._parser = parser
        self._special = special
        self._end_id = end_id
        self._splits = split_reasoning
        self.reasoning_tokens = 0
        self._reading = parser.read()
        next(self._reading, None)

    def feed(self, piece: Piece) -> list[Delta]:
        """What the piece adds; with the last piece also what was held back, and `End`."""
        text = _with_marks(piece, self._special) if piece.marks and self._special else piece.text
        was_inside = self._parser.inside
        deltas: list[Delta] = []
        if text:
            delta = self._reader.flows(text)
            deltas = [delta] if delta is not None else self._read(text)
        if self._parser.inside or was_inside:
            self._count(piece.tokens, was_inside=was_inside)
        if piece.finish is not None:
            deltas += self._end(piece.finish)
        return deltas if self._splits else [_as_content(delta) for delta in deltas]

    def _read(self, text: str) -> list[Delta]:
        self._reader.feed(text)
        next(self._reading, None)
        return self._reader.take()

    def _end(self, finish: Finish) -> list[Delta]:
        reader = self._reader
        reader.feed("")
        reader.ended = True
        reader.truncated = finish is Finish.LENGTH
        for _ in self._reading:
            raise AssertionError("a parser waits after the end")
        return [*reader.take(), End(finish, self._calls.count)]

    def _count(self, tokens: tuple[int, ...], *, was_inside: bool) -> None:
        """Tokens of reasoning, the tag that ends it included; exact when the tag is one token or
        pieces are single tokens."""
        if was_inside and not self._parser.inside and self._end_id in tokens:
            self.reasoning_tokens += tokens.index(self._end_id) + 1
        else:
            self.reasoning_tokens += len(tokens)


def _as_content(delta: Delta) -> Delta:
    return Content(delta.text) if isinstance(delta, Reasoning) else delta


def _with_marks(piece: Piece, special: Mapping[int, str]) -> str:
    """The text with the special tokens that parsers know written out where they stood."""
    data = piece.text.encode()
    parts: list[bytes] = []
    last = 0
    for offset, token in piece.marks:
        if token in special:
            parts += (data[last:offset], special[token].encode())
            last = offset
    parts.append(data[last:])
    return b"".join(parts).decode()

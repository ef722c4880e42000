"""Runs samples through `Channels` in any cutting and folds what comes out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from edgeserve.generation import Finish, Piece
from edgeserve.text.channels import (
    CallArguments,
    CallEnd,
    CallStart,
    Channels,
    Content,
    Delta,
    End,
    Parsers,
    Reasoning,
)
from edgeserve.text.channels.registry import REASONING_PARSERS, TOOL_PARSERS, special_texts
from tests.text.channels.sample import Sample


@dataclass
class Folded:
    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    complete: list[bool] = field(default_factory=list)
    end: End | None = None

    def add(self, delta: Delta) -> None:
        """Also checks that each delta is one that a client can fold."""
        assert self.end is None
        if isinstance(delta, Content):
            assert delta.text
            self.content += delta.text
        elif isinstance(delta, Reasoning):
            assert delta.text
            self.reasoning += delta.text
        elif isinstance(delta, CallStart):
            assert delta.index == len(self.calls) == len(self.complete)
            self.calls.append((delta.name, ""))
            self.ids.append(delta.id)
        elif isinstance(delta, CallArguments):
            assert delta.text and delta.index == len(self.calls) - 1 == len(self.complete)
            name, arguments = self.calls[-1]
            self.calls[-1] = (name, arguments + delta.text)
        elif isinstance(delta, CallEnd):
            assert delta.index == len(self.calls) - 1 == len(self.complete)
            self.complete.append(delta.complete)
        else:
            assert len(self.complete) == len(self.calls) == delta.calls
            self.end = delta

    def told(self) -> tuple[str, str, list[tuple[str, str]], list[bool]]:
        return self.content, self.reasoning, self.calls, self.complete


def id_numbers() -> dict[str, int]:
    """Token ids for every special token that any parser knows."""
    pairs = product(TOOL_PARSERS, REASONING_PARSERS)
    texts = (text for tool, think in pairs for text in special_texts(tool, think))
    return {text: number for number, text in enumerate(dict.fromkeys(texts), start=100)}


IDS = id_numbers()


def channels(sample: Sample) -> Channels:
    return Parsers(sample.tool, sample.think, IDS.get).channels(
        prompt=sample.prompt,
        prefill=sample.prefill,
        tools=sample.tools,
        split_reasoning=sample.split_reasoning,
    )


def fold(stage: Channels, pieces: Iterable[Piece], finish: Finish) -> Folded:
    folded = Folded()
    for piece in pieces:
        for delta in stage.feed(piece):
            folded.add(delta)
    for delta in stage.feed(Piece(0, "", finish=finish)):
        folded.add(delta)
    assert folded.end == End(finish, len(folded.calls))
    return folded


def run(sample: Sample, parts: Iterable[str]) -> Folded:
    return fold(channels(sample), (Piece(0, part) for part in parts), sample.finish)


def marked(sample: Sample) -> Iterator[Piece]:
    """The text one character a piece, special tokens as marks alone."""
    for text, token in _tokens(sample):
        yield from (Piece(0, char) for char in text)
        if token is not None:
            yield Piece(0, "", marks=((0, token),))


def marked_whole(sample: Sample) -> Piece:
    """The text as one piece, special tokens as marks alone."""
    plain, marks = "", []
    for text, token in _tokens(sample):
        plain += text
        if token is not None:
            marks.append((len(plain.encode()), token))
    return Piece(0, plain, marks=tuple(marks))


def _tokens(sample: Sample) -> Iterator[tuple[str, int | None]]:
    """Text, and the special token after it that the sample's parsers know."""
    known = special_texts(sample.tool, sample.think, calls=bool(sample.tools))
    at = 0
    for match in re.finditer("|".join(re.escape(text) for text in known) or "(?!)", sample.text):
        yield sample.text[at : match.start()], IDS[match.group()]
        at = match.end()
    yield sample.text[at:], None

"""What a client learns of one choice at a time, before any wire form: text, reasoning, tool calls,
logprobs, the end.

`Chunks` turns an answer's pieces into chunks. Streams send them, whole answers fold them, so both
say the same. A logprob travels with the text that its token begins in, or with the next thing told
when that text is markup: tokens whose text is still withheld wait, and those behind a stop string
or the end-of-sequence token are never told.
"""

from __future__ import annotations

from collections import deque

import msgspec

from edgeserve.generation import Finish, Piece, TokenLogprob
from edgeserve.pipeline.answer import Answer
from edgeserve.protocol.vocabulary import Vocabulary
from edgeserve.text.channels import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Delta,
    End,
    Reasoning,
)


class Told(msgspec.Struct, frozen=True):
    """The logprob of a token and where in the choice's text it begins, in characters. The first
    token of a prompt has no logprob."""

    token: int
    logprob: float | None
    top: tuple[tuple[int, float], ...]
    offset: int


class Chunk(msgspec.Struct, frozen=True):
    """What one choice gained: content, reasoning or a part of a call. `finish` comes alone and
    last."""

    choice: int
    text: str = ""
    logprobs: tuple[Told, ...] = ()
    finish: Finish | None = None
    reasoning: str = ""
    call: CallStart | CallArguments | None = None
    has_called: bool = False  # with `finish`: calls were told


class Chunks:
    """Pieces of one answer -> chunks. `vocabulary` is given when logprobs were asked for."""

    def __init__(
        self, answer: Answer, *, echo: bool, vocabulary: Vocabulary | None, alternatives: int = 0
    ) -> None:
        """`alternatives`: as many as were asked for beside each token of an echoed prompt."""
        self._answer = answer
        self._echo = echo
        self._vocabulary = vocabulary
        self._alternatives = alternatives
        self._begun: set[int] = set()
        self._margins: dict[int, Margin] = {}
        self._untold: dict[int, tuple[Told, ...]] = {}  # logprobs that wait for the next chunk
        self.completion_tokens = 0  # so far

    def feed(self, piece: Piece) -> list[Chunk]:
        self.completion_tokens += len(piece.tokens)
        chunks: list[Chunk] = []
        if self._echo and piece.choice not in self._begun:
            self._begun.add(piece.choice)
            chunks.append(self._prompt(piece.choice))
        logprobs: tuple[Told, ...] = ()
        if self._vocabulary is not None:
            waited = self._untold.pop(piece.choice, ())
            logprobs = waited + self._margin(piece.choice).feed(piece)
        for delta in self._answer.read(piece):
            if isinstance(delta, CallEnd):
                continue
            if isinstance(delta, End) and logprobs:
                chunks.append(Chunk(piece.choice, "", logprobs))
                logprobs = ()
            chunks.append(chunk_of(piece.choice, delta, logprobs))
            logprobs = ()
        if logprobs:
            self._untold[piece.choice] = logprobs
        return chunks

    def _prompt(self, choice: int) -> Chunk:
        """The echoed prompt as the first chunk of a choice."""
        index = choice // self._answer.drawn
        text = self._answer.prompt_texts[index]
        if self._vocabulary is None:
            return Chunk(choice, text)
        margin = self._margin(choice)
        ids = self._answer.prompt_ids[index]
        logprobs = self._answer.prompt_logprobs.get(index, ())
        first = [TokenLogprob(token, 0.0) for token in ids[:1]]
        told = margin.prompt(text, [*first, *map(self._trim, logprobs)])
        nothing = [msgspec.structs.replace(one, logprob=None) for one in told[:1]]
        return Chunk(choice, text, (*nothing, *told[1:]))

    def _trim(self, logprob: TokenLogprob) -> TokenLogprob:
        if len(logprob.top) <= self._alternatives:
            return logprob
        return msgspec.structs.replace(logprob, top=logprob.top[: self._alternatives])

    def _margin(self, choice: int) -> Margin:
        if choice not in self._margins:
            assert self._vocabulary is not None
            self._margins[choice] = Margin(self._vocabulary)
        return self._margins[choice]


def chunk_of(choice: int, delta: Delta, logprobs: tuple[Told, ...]) -> Chunk:
    if isinstance(delta, Content):
        return Chunk(choice, delta.text, logprobs)
    if isinstance(delta, Reasoning):
        return Chunk(choice, logprobs=logprobs, reasoning=delta.text)
    if isinstance(delta, End):
        return Chunk(choice, finish=delta.finish, has_called=delta.calls > 0)
    assert not isinstance(delta, CallEnd)
    return Chunk(choice, logprobs=logprobs, call=delta)


class Margin:
    """The logprobs of one choice that wait for their text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._waiting: deque[tuple[int, Told]] = deque()  # with the byte where the token begins
        self._text_bytes = 0  # of the text that was sent
        self._token_bytes = 0  # of the tokens that came
        self._token_chars = 0

    def prompt(self, text: str, logprobs: list[TokenLogprob]) -> tuple[Told, ...]:
        """All of a prompt's tokens, whatever its text; generated tokens begin behind it."""
        for logprob in logprobs:
            self._add(logprob)
        told = self._release(everything=True)
        self._text_bytes = self._token_bytes = len(text.encode())
        self._token_chars = len(text)
        return told

    def feed(self, piece: Piece) -> tuple[Told, ...]:
        for logprob in piece.logprobs:
            self._add(logprob)
        self._text_bytes += len(piece.text.encode())
        return self._release(everything=piece.finish is Finish.LENGTH)

    def _add(self, logprob: TokenLogprob) -> None:
        told = Told(logprob.token, logprob.logprob, logprob.top, self._token_chars)
        self._waiting.append((self._token_bytes, told))
        raw = self._vocabulary.text_bytes(logprob.token)
        self._token_bytes += len(raw)
        self._token_chars += sum(byte & 0xC0 != 0x80 for byte in raw)  # bytes that begin one

    def _release(self, *, everything: bool) -> tuple[Told, ...]:
        told: list[Told] = []
        while self._waiting and (everything or self._waiting[0][0] < self._text_bytes):
            told.append(self._waiting.popleft()[1])
        return tuple(told)

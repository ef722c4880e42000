"""Chunks: logprobs travel with the text their tokens begin in; the end is never told twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edgeserve.generation import Finish, Piece, TokenLogprob
from edgeserve.pipeline.reading import as_content
from edgeserve.protocol.chunk import Chunks
from edgeserve.protocol.openai.logprobs import chat_logprobs, completion_logprobs
from edgeserve.protocol.vocabulary import Vocabulary

EOS = 256
VOCABULARY = Vocabulary([bytes([i]) for i in range(256)] + [b"<eos>"], {EOS})


class Admitted:
    """As much of an answer as chunks look at."""

    choices = drawn = 1
    prompt_ids = ((97, 0xC3, 0xA9),)
    prompt_texts = ("aé",)
    read = staticmethod(as_content)
    prompt_logprobs = {0: (TokenLogprob(0xC3, -1.0), TokenLogprob(0xA9, -2.0))}  # noqa: RUF012


def chunks(*, echo: bool = False, logprobs: bool = True) -> Chunks:
    answer: Any = Admitted()
    return Chunks(answer, echo=echo, vocabulary=VOCABULARY if logprobs else None)


def piece(text: str, tokens: bytes | tuple[int, ...], **more: Any) -> Piece:
    logprobs = tuple(TokenLogprob(token, -1.0) for token in tokens)
    return Piece(0, text, tuple(tokens), logprobs, **more)


def told(feeder: Chunks, *pieces: Piece) -> list[tuple[str, list[int], Finish | None]]:
    return [
        (chunk.text, [one.token for one in chunk.logprobs], chunk.finish)
        for one_piece in pieces
        for chunk in feeder.feed(one_piece)
    ]


def test_a_piece_without_text_is_no_chunk() -> None:
    assert told(chunks(logprobs=False), piece("", b"\xc3"), piece("é", b"\xa9")) == [
        ("é", [], None)
    ]


def test_logprobs_wait_for_their_text() -> None:
    assert told(chunks(), piece("", b"\xc3"), piece("é", b"\xa9")) == [("é", [0xC3, 0xA9], None)]


def test_the_end_of_sequence_and_what_follows_a_stop_string_are_not_told() -> None:
    ended = piece("", (EOS,), finish=Finish.STOP, stop=EOS)
    assert told(chunks(), piece("a", b"a"), ended) == [
        ("a", [97], None),
        ("", [], Finish.STOP),
    ]
    stopped = piece("b", b"bSTOP", finish=Finish.STOP, stop="STOP")
    assert told(chunks(), piece("a", b"a"), stopped) == [
        ("a", [97], None),
        ("b", [98], None),
        ("", [], Finish.STOP),
    ]


def test_a_cut_by_length_tells_every_token() -> None:
    assert told(chunks(), piece("\ufffd", b"\xe6\x98", finish=Finish.LENGTH)) == [
        ("\ufffd", [0xE6, 0x98], None),
        ("", [], Finish.LENGTH),
    ]


def test_an_echoed_prompt_comes_first_and_moves_the_offsets() -> None:
    feeder = chunks(echo=True)
    prompt, first, end = feeder.feed(piece("é", b"\xc3\xa9", finish=Finish.LENGTH))
    assert (prompt.text, first.text, end.finish) == ("aé", "é", Finish.LENGTH)
    assert [one.logprob for one in prompt.logprobs] == [None, -1.0, -2.0]
    assert [one.offset for one in (*prompt.logprobs, *first.logprobs)] == [0, 1, 2, 2, 3]
    shown = completion_logprobs(prompt.logprobs, VOCABULARY)
    assert shown["tokens"] == ["a", "bytes:\\xc3", "bytes:\\xa9"]
    assert shown["top_logprobs"][0] is None


def test_names_and_bytes_are_exact() -> None:
    assert VOCABULARY.name(97) == "a"
    assert VOCABULARY.name(0xFF) == "bytes:\\xff"
    assert VOCABULARY.name(EOS) == "<eos>"
    assert VOCABULARY.raw(99999) == b""
    (one,) = chunks().feed(piece("a", b"a"))
    assert chat_logprobs(one.logprobs, VOCABULARY)["content"] == [
        {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}
    ]


@given(st.text(max_size=40), st.data())
def test_any_cutting_tells_the_same(text: str, data: st.DataObject) -> None:
    """Each token once, in order, not before its text; the same however the text is cut."""
    feeder = chunks()
    raw = text.encode()
    at = sent = 0
    tokens: list[int] = []
    out = ""
    while at < len(raw):
        step = data.draw(st.integers(1, len(raw) - at))
        now = raw[: at + step].decode(errors="ignore")
        for chunk in feeder.feed(piece(now[sent:], raw[at : at + step])):
            tokens += [one.token for one in chunk.logprobs]
            out += chunk.text
        sent, at = len(now), at + step
    assert bytes(tokens) == raw and out == text

"""Text as it becomes certain, against the whole text at once; and the ring."""

from __future__ import annotations

import os
import select
import threading
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeserve._native.stream import Ring, TextStream, Vocabulary
from tests.native.network import Bench


def whole(data: bytes, stops: list[bytes], include: bool) -> tuple[str, str | None]:
    """The text up to the first stop string to end; of several that end there, the longest."""
    text = data.decode("utf-8", "replace").encode()
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            stop = max(ending, key=len)
            return text[: end if include else end - len(stop)].decode(), stop.decode()
    return text.decode(), None


def streamed(
    pieces: list[bytes], stops: list[bytes], include: bool
) -> tuple[list[str], str | None]:
    stream = TextStream(Vocabulary(pieces), stop=stops, include_stop=include)
    texts = []
    for token in range(len(pieces)):
        text, marks, stop = stream.feed(token)
        texts.append(text)
        assert marks == ()
        if stop is not None:
            return texts, stop
    text, stop = stream.finish()
    return [*texts, text], stop


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[start:stop] for start, stop in pairwise(edges)]


BYTES = st.one_of(
    st.binary(max_size=30),
    st.lists(st.sampled_from("ab\u00e9\u20ac\U0001f600\ufffd")).map(lambda c: "".join(c).encode()),
    st.lists(
        st.sampled_from([b"\xe2", b"\x82", b"\xac", b"\xf0", b"\x9f", b"\xed", b"\xa0", b"a"])
    ).map(b"".join),
)
STOP = st.text("ab\u00e9\u20ac\ufffd", min_size=1, max_size=4).map(str.encode)


@given(BYTES, st.lists(STOP, max_size=4), st.lists(st.integers(0, 99), max_size=12), st.booleans())
@example(b"\xe2\x82", ["\ufffd".encode()], [1], False)
@example(b"abab\xc3", [b"ababc", b"bb"], [1, 2, 3], True)
@settings(max_examples=500, deadline=None)
def test_any_cutting_gives_the_text_of_the_whole(
    data: bytes, stops: list[bytes], at: list[int], include: bool
) -> None:
    texts, stop = streamed(cut(data, at), stops, include)
    assert ("".join(texts), stop) == whole(data, stops, include)


@given(BYTES, st.lists(STOP, max_size=3))
@settings(max_examples=300, deadline=None)
def test_only_a_live_prefix_or_an_incomplete_character_is_withheld(
    data: bytes, stops: list[bytes]
) -> None:
    texts, stop = streamed([data[i : i + 1] for i in range(len(data))], stops, False)
    for count in range(1, len(texts) if stop is None else len(texts) - 1):
        out = "".join(texts[:count])
        # What a decoder that waits for whole characters has by now:
        certain = decoded_so_far(data[:count])
        assert certain.startswith(out)
        held = certain[len(out) :].encode()
        assert held == b"" or any(s.startswith(held) and s != held for s in stops)


def decoded_so_far(data: bytes) -> str:
    """All characters that no further byte can change."""
    for count in (3, 2, 1):
        try:
            data[-count:].decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and error.start == 0 and len(data) >= count:
                return data[:-count].decode("utf-8", "replace")
    return data.decode("utf-8", "replace")


def test_special_tokens_mark_and_bound_and_feed_no_stop_string() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"<s>", b"\xe2\x82"], special_ids=[2])
    stream = TextStream(vocabulary, stop=[b"ab", b"<s>"])
    assert stream.feed(0) == ("", (), None)
    assert stream.feed(2) == ("a", ((1, 2),), None)
    assert stream.feed(1) == ("b", (), None)
    assert stream.feed(3) == ("", (), None)
    assert stream.feed(2) == ("\ufffd", ((3, 2),), None)
    assert stream.feed(0) == ("", (), None)
    assert stream.feed(1) == ("", (), "ab")
    assert stream.feed(0) == ("", (), None)
    assert stream.finish() == ("", None)
    shown = TextStream(vocabulary, stop=[b"<s>", b">b"], skip_special_tokens=False)
    assert [shown.feed(id) for id in (0, 2, 1)] == [
        ("a", (), None),
        ("<s>", ((0, 2),), None),
        ("b", (), None),
    ]


def test_disarmed_stop_strings_pass_and_may_begin_later_ones() -> None:
    stream = TextStream(Vocabulary([b"a", b"b"]), stop=[b"ab", b"abab"])
    assert stream.feed(0, armed=False) == ("", (), None)
    assert stream.feed(1, armed=False) == ("", (), None)  # "ab" may become "abab"
    assert stream.feed(0, armed=False) == ("", (), None)
    assert stream.feed(1) == ("", (), "abab")
    single = TextStream(Vocabulary([b"a", b"b"]), stop=[b"b"])
    assert single.feed(1, armed=False) == ("b", (), None)


def test_ids_beyond_the_vocabulary_have_no_text() -> None:
    vocabulary = Vocabulary([b"a", b""])
    stream = TextStream(vocabulary)
    assert [stream.feed(id)[0] for id in (0, 1, 2, 10**6, -1)] == ["a", "", "", "", ""]
    assert vocabulary.size == 2 and vocabulary.piece(0) == b"a" and vocabulary.piece(7) == b""


def test_vocabulary_and_stops_refuse_what_makes_no_sense() -> None:
    with pytest.raises(IndexError):
        Vocabulary([b"a"], special_ids=[1])
    with pytest.raises(IndexError):
        Vocabulary([b"a"], special_ids=[-1])
    with pytest.raises(TypeError):
        Vocabulary(["a"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="not empty"):
        TextStream(Vocabulary([b"a"]), stop=[b""])
    with pytest.raises(ValueError):
        TextStream(Vocabulary([b"a"]), stop=[b"\xff"])


def readable(ring: Ring) -> bool:
    return bool(select.select([ring.fileno()], [], [], 0)[0])


def test_ring_is_readable_while_something_waits() -> None:
    bench = Bench()
    assert not readable(bench.ring) and bench.ring.drain() == []
    bench.complete(bench.sequence([1, 2], max_tokens=2))
    assert readable(bench.ring)
    assert [entry[2] for entry in bench.ring.drain()] and not readable(bench.ring)
    bench.ring.close()
    bench.complete(bench.sequence([1, 2], max_tokens=2))
    assert len(bench.ring.drain()) == 2


def test_ring_loses_nothing_between_two_threads() -> None:
    bench = Bench(pages=300)
    got: list[int] = []
    sequence = bench.sequence([1], max_tokens=900, max_length=1000)

    def read() -> None:
        while len(got) < 900:
            select.select([bench.ring.fileno()], [], [], 10)
            got.extend(token for entry in bench.ring.drain() for token in entry[2])

    reader = threading.Thread(target=read)
    reader.start()
    tokens = bench.complete(sequence)
    reader.join(10)
    assert got == tokens


def test_ring_closes_its_eventfd() -> None:
    ring = Ring()
    fd = ring.fileno()
    del ring
    with pytest.raises(OSError):
        os.fstat(fd)

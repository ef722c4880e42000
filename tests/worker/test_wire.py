"""The wire: what goes in comes out, in any cut; whatever else comes in is a protocol error."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve.config import EngineOptions
from edgeserve.generation import (
    Admitted,
    Finished,
    GenerationRequest,
    Piece,
    Pieces,
    PromptLogprobs,
    TokenLogprob,
    Usage,
)
from edgeserve.sampling import SamplerSettings
from edgeserve.worker.wire import frame
from edgeserve.worker.wire.connection import CLOSED, Connection
from edgeserve.worker.wire.frame import HEADER, INLINE, MAGIC, SHARED, ProtocolError, Reader
from edgeserve.worker.wire.message import Cancel, Events, Hello, Message, Ping, Start, Submit


def make_request(tokens: int = 3) -> GenerationRequest:
    return GenerationRequest(
        id=7,
        prompt=tuple(range(tokens)),
        sampler=SamplerSettings(seed=2**64 - 1, logit_bias=((3, -1.5),)),
        max_tokens=5,
        stop=("\n", "é"),
        cache_salt="a",
    )


MESSAGES: list[Message] = [
    Hello(1, "0.1.0", 42),
    Start(1, EngineOptions(checkpoint="x", cache_dir=Path("/tmp/c")), "org/name", "name"),
    Submit(make_request()),
    Cancel(7),
    Events(
        (
            Admitted(7, 16),
            PromptLogprobs(7, (TokenLogprob(1, -0.5, ((1, -0.5), (2, -3.0))),)),
            Pieces(7, (Piece(0, "né", (1, 2)), Piece(1, "", (), (), ((0, 5),), None, "x"))),
            Finished(7, Usage(3, 4, 0)),
        )
    ),
    Ping(),
]


def test_every_message_comes_out_as_it_went_in_however_it_is_cut() -> None:
    data = b"".join(frame.encode(message)[0] for message in MESSAGES)
    for size in (1, 2, 7, 8, 9, 1000, len(data)):
        reader = Reader()
        got = [m for i in range(0, len(data), size) for m in reader.feed(data[i : i + size])]
        assert got == MESSAGES


def test_a_large_message_travels_as_a_memory_file() -> None:
    message = Submit(make_request(200_000))
    data, descriptor = frame.encode(message)
    assert len(data) == HEADER.size
    assert descriptor is not None
    assert Reader().feed(data, [descriptor]) == [message]
    with pytest.raises(OSError):  # the reader has closed it
        os.fstat(descriptor)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_a_protocol_error_or_waits_for_more(data: bytes) -> None:
    reader = Reader()
    try:
        assert reader.feed(data) == []
    except ProtocolError:
        return
    assert len(data) < HEADER.size or data[:2] == MAGIC.to_bytes(2, "little")


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_a_frame_around_garbage_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        Reader().feed(HEADER.pack(MAGIC, INLINE, len(body)) + body)


@pytest.mark.parametrize(
    "header",
    [
        HEADER.pack(0, INLINE, 1),
        HEADER.pack(MAGIC, 9, 1),
        HEADER.pack(MAGIC, INLINE, 0),
        HEADER.pack(MAGIC, INLINE, frame.INLINE_BYTES + 1),
        HEADER.pack(MAGIC, SHARED, frame.SHARED_BYTES + 1),
        HEADER.pack(MAGIC, SHARED, 100),  # without its descriptor
    ],
)
def test_a_wrong_header_is_a_protocol_error(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        Reader().feed(header)


def test_a_memory_file_that_is_too_short_is_a_protocol_error() -> None:
    descriptor = frame.memory_file(b"x" * 10)
    with pytest.raises(ProtocolError, match="shorter"):
        Reader().feed(HEADER.pack(MAGIC, SHARED, 100_000), [descriptor])


def test_a_descriptor_that_cannot_be_read_is_a_protocol_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(ProtocolError, match="cannot be read"):
        Reader().feed(HEADER.pack(MAGIC, SHARED, 100_000), [writing])


class Pair:
    """Two ends of a wire on one loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.sockets = socket.socketpair()
        self.got: asyncio.Queue[Message] = asyncio.Queue()
        self.reason: asyncio.Future[str] = loop.create_future()
        self.left = Connection(loop, self.sockets[0], lambda _: None, lambda _: None)
        self.right = Connection(loop, self.sockets[1], self.got.put_nowait, self._lost)

    def _lost(self, reason: str) -> None:
        self.reason.set_result(reason)


@pytest.mark.anyio
async def test_messages_of_all_sizes_arrive_in_order_while_the_socket_is_full() -> None:
    pair = Pair()
    sent = [Submit(make_request(n)) for n in (10, 70_000, 5_000, 200_000, 1) * 20]
    for message in sent:
        pair.left.send(message)
    got = [await pair.got.get() for _ in sent]
    assert got == sent
    pair.left.close()
    assert await pair.reason == CLOSED


@pytest.mark.anyio
async def test_garbage_on_the_socket_loses_the_connection_with_a_reason() -> None:
    pair = Pair()
    pair.sockets[0].send(b"GET / HTTP/1.1\r\n\r\n")
    assert "protocol" in await pair.reason
    assert not pair.right.is_open
    pair.left.close()


@pytest.mark.anyio
async def test_a_side_that_does_not_read_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeserve.worker.wire.connection.BACKLOG_BYTES", 1_000_000)
    ours, _theirs = socket.socketpair()
    reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    connection = Connection(asyncio.get_running_loop(), ours, lambda _: None, reason.set_result)
    while connection.is_open:
        connection.send(Submit(make_request(5_000)))
    assert "does not read" in await reason

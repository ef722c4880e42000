"""Frames: a header of eight bytes and a body of msgpack.

Header: magic, kind, length of the body, little endian. A body above `INLINE_BYTES` travels as a
memory file whose descriptor goes with the header. Magic, kind, length and types are checked:
whatever is wrong is a `ProtocolError`.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterable

import msgspec

from edgeserve.worker.wire.message import Message, decode_hook, encode_hook

MAGIC = 0x5345  # "ES"
HEADER = struct.Struct("<HHI")  # magic, kind, length
INLINE, SHARED = 0, 1
INLINE_BYTES = 64 * 1024
SHARED_BYTES = 512 * 1024**2


class ProtocolError(Exception):
    """The other side sent something that is no frame."""


def encode(message: Message) -> tuple[bytes, int | None]:
    """The bytes of a frame, and the descriptor to send with them, which the caller then owns."""
    body = msgspec.msgpack.encode(message, enc_hook=encode_hook)
    if len(body) <= INLINE_BYTES:
        return HEADER.pack(MAGIC, INLINE, len(body)) + body, None
    if len(body) > SHARED_BYTES:
        raise ValueError(f"a message of {len(body)} bytes is above the wire's limit")
    return HEADER.pack(MAGIC, SHARED, len(body)), memory_file(body)


def memory_file(body: bytes) -> int:
    """A descriptor of a memory file with these bytes."""
    descriptor = os.memfd_create("edgeserve-frame", os.MFD_CLOEXEC)
    try:
        view = memoryview(body)
        while view:
            view = view[os.write(descriptor, view) :]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Reader:
    """Bytes and descriptors in, messages out."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._descriptors: deque[int] = deque()
        self._decoder = msgspec.msgpack.Decoder(Message, dec_hook=decode_hook)

    def feed(self, data: bytes, descriptors: Iterable[int] = ()) -> list[Message]:
        self._bytes += data
        self._descriptors.extend(descriptors)
        messages = []
        start = 0
        while len(self._bytes) - start >= HEADER.size:
            kind, length = self._header(start)
            inside = length if kind == INLINE else 0
            stop = start + HEADER.size + inside
            if len(self._bytes) < stop:
                break
            body = bytes(self._bytes[stop - inside : stop]) if inside else self._shared(length)
            messages.append(self._decode(body))
            start = stop
        del self._bytes[:start]
        return messages

    def _header(self, start: int) -> tuple[int, int]:
        magic, kind, length = HEADER.unpack_from(self._bytes, start)
        limits = {INLINE: INLINE_BYTES, SHARED: SHARED_BYTES}
        if magic != MAGIC or not 0 < length <= limits.get(kind, 0):
            raise ProtocolError("a frame has a wrong header")
        return kind, length

    def _shared(self, length: int) -> bytes:
        if not self._descriptors:
            raise ProtocolError("a frame lacks its memory file")
        descriptor = self._descriptors.popleft()
        try:
            # Read, not mapped: a file that shrinks under a mapping would kill this process.
            body = os.pread(descriptor, length, 0)
        except OSError as error:
            raise ProtocolError("a memory file cannot be read") from error
        finally:
            os.close(descriptor)
        if len(body) != length:
            raise ProtocolError("a memory file is shorter than its frame says")
        return body

    def _decode(self, body: bytes) -> Message:
        try:
            message: Message = self._decoder.decode(body)
        except (msgspec.MsgspecError, ValueError, NotImplementedError, RecursionError) as error:
            raise ProtocolError("a frame holds no message") from error
        return message

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popleft())

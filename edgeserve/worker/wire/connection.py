"""One end of the wire on an asyncio loop: blocks in epoll, never in a read or a write."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable

from edgeserve.worker.wire.frame import ProtocolError, Reader, encode
from edgeserve.worker.wire.message import Message

BACKLOG_BYTES = 256 * 1024**2  # unsent bytes at which the other side counts as gone
READ_BYTES = 64 * 1024  # above 128 KiB each read would map and unmap memory
MAX_DESCRIPTORS = 16  # per read
CLOSED = "it closed the connection"


class Connection:
    """`receive` gets each message; `lost` is called once, with the reason, when the other side is
    gone (`CLOSED`) or wrong. `close` calls nothing."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        receive: Callable[[Message], None],
        lost: Callable[[str], None],
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._receive = receive
        self._lost = lost
        self._reader = Reader()
        self._unsent: deque[tuple[memoryview, int | None]] = deque()  # bytes, descriptor
        self._unsent_bytes = 0
        self._is_open = True
        self._is_blocked = False  # a writer is registered
        loop.add_reader(sock.fileno(), self._read)

    @property
    def is_open(self) -> bool:
        return self._is_open

    def send(self, message: Message) -> None:
        """Queue a message; a connection that is lost drops it."""
        if not self._is_open:
            return
        frame, descriptor = encode(message)
        self._unsent.append((memoryview(frame), descriptor))
        self._unsent_bytes += len(frame)
        if len(self._unsent) == 1:
            self._write()
        elif self._unsent_bytes > BACKLOG_BYTES:
            self._lose("it does not read its messages")

    def _write(self) -> None:
        while self._unsent and self._is_open:
            data, descriptor = self._unsent[0]
            try:
                sent = self._send_some(data, descriptor)
            except (BlockingIOError, InterruptedError):
                self._is_blocked = True
                self._loop.add_writer(self._sock.fileno(), self._write)
                return
            except OSError as error:
                # Not lost yet: what it said last may still be readable.
                self._loop.remove_writer(self._sock.fileno())
                self._discard_unsent()
                if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                    self._lose(f"writing failed ({error.strerror})")
                return
            self._unsent_bytes -= sent
            if sent == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = (data[sent:], None)
        if self._is_blocked and self._is_open:
            self._is_blocked = False
            self._loop.remove_writer(self._sock.fileno())

    def _send_some(self, data: memoryview, descriptor: int | None) -> int:
        if descriptor is None:
            return self._sock.send(data)
        sent = socket.send_fds(self._sock, [data], [descriptor])
        os.close(descriptor)
        return sent

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._sock, READ_BYTES, MAX_DESCRIPTORS)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionResetError:  # it ended with messages unread
            self._lose(CLOSED)
            return
        except OSError as error:
            self._lose(f"reading failed ({error.strerror})")
            return
        if not data:
            self._lose(CLOSED)
            return
        try:
            messages = self._reader.feed(data, descriptors)
        except ProtocolError as error:
            self._lose(f"it broke the protocol: {error}")
            return
        for message in messages:
            if self._is_open:
                self._receive(message)

    def _lose(self, reason: str) -> None:
        if self._is_open:
            self.close()
            self._lost(reason)

    def _discard_unsent(self) -> None:
        for _, descriptor in self._unsent:
            if descriptor is not None:
                os.close(descriptor)
        self._unsent.clear()
        self._unsent_bytes = 0

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._discard_unsent()
            self._reader.close()
            self._sock.close()

    def flush(self, timeout_s: float) -> None:
        """Send what is queued before leaving, blocking at most so long for each piece."""
        self._loop.remove_writer(self._sock.fileno())
        self._sock.settimeout(timeout_s)
        try:
            while self._unsent:
                data, descriptor = self._unsent.popleft()
                if sent := self._send_some(data, descriptor):
                    self._sock.sendall(data[sent:])
        except OSError:
            self._discard_unsent()

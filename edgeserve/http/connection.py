"""One HTTP connection: uvicorn's, for clients of any kind.

- The head of a request has a size and a time in which to come; refusals are errors in our form.
- `Upgrade` is not for us, so it is taken out: behind an `Upgrade: h2c`, which Java's client sends
  with every first request, the parser would lose the body.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from edgeserve.errors import EdgeserveError, HeadTooLarge, InvalidRequest, TooSlow
from edgeserve.protocol.openai.error import error_body

HEAD_BYTES = 64 * 1024
HEAD_S = 60.0
END = b"\r\n\r\n"
UPGRADE = re.compile(rb"(?<=\r\n)upgrade(?=[ \t]*:)", re.IGNORECASE)


class Connection(HttpToolsProtocol):
    """Made by uvicorn, one for each client that connects."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._head: bytearray | None = bytearray()  # so far; None: it is complete
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            stop = self._end_of_head(self._head, data)
            if len(self._head) + stop > HEAD_BYTES:
                self._refuse(HeadTooLarge(HEAD_BYTES))
                return
            self._head += data[:stop]
            data = UPGRADE.sub(b"x-ignored-upgrade", data[:stop]) + data[stop:]
            if self._timer is None:
                self._start_timer()
        super().data_received(data)

    @staticmethod
    def _end_of_head(head: bytearray, data: bytes) -> int:
        """How many bytes of `data` belong to the head that began with `head`."""
        before = bytes(head[-len(END) + 1 :])
        found = (before + data).find(END)
        return len(data) if found < 0 else found + len(END) - len(before)

    def on_headers_complete(self) -> None:
        self._head = None
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head = bytearray()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - says less than ours
        self._refuse(InvalidRequest("this is not a valid HTTP/1.1 request"))

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_S, self._refuse, TooSlow("headers", HEAD_S))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, error: EdgeserveError) -> None:
        """Answer what never became a request, and close."""
        self._stop_timer()
        info = error.info()
        body = error_body(info)
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[info.status] + head % len(body) + body)
        self.transport.close()

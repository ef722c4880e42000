"""Server-sent events through `resp.stream`: ready bytes, as fast as the client reads them.

One task per stream walks the answer and puts frames into a box; the response takes all that lie
there in one write. So a fast engine costs few system calls, a slow reader stops the encoding at
`BOX_BYTES`, and silence is filled with comments without a timer per token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

PING = b": ping\n\n"
PING_S = 10.0
BOX_BYTES = 256 * 1024


class Box:
    """Frames on their way from the answer to the transport. One task puts, one takes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames: list[bytes] = []
        self._bytes = 0
        self._closed = False
        self._taker: asyncio.Future[None] | None = None
        self._putter: asyncio.Future[None] | None = None

    def put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._bytes += len(frame)
        _wake(self._taker)

    async def room(self) -> None:
        """Wait until the transport has taken what lies here, if that is much."""
        if self._bytes >= BOX_BYTES:
            self._putter = self._loop.create_future()
            await self._putter

    def close(self) -> None:
        self._closed = True
        _wake(self._taker)

    async def take(self, timeout_s: float) -> bytes | None:
        """Everything that lies here, a ping after `timeout_s` of nothing, None at the end."""
        if not self._frames and not self._closed:
            self._taker = taker = self._loop.create_future()
            timer = self._loop.call_later(timeout_s, _wake, taker)
            try:
                await taker
            finally:
                timer.cancel()
        if not self._frames:
            return None if self._closed else PING
        frames, self._frames, self._bytes = self._frames, [], 0
        _wake(self._putter)
        return frames[0] if len(frames) == 1 else b"".join(frames)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


async def events(
    frames: AsyncIterator[bytes],
    failed: Callable[[Exception], bytes],
    ping_s: float = PING_S,
) -> AsyncIterator[bytes]:
    """The body of a stream. A failure becomes what `failed` makes of it, never a silent cut."""
    box = Box()
    pump = asyncio.create_task(_pump(frames, failed, box))
    try:
        while (data := await box.take(ping_s)) is not None:
            yield data
    finally:
        pump.cancel()


async def _pump(
    frames: AsyncIterator[bytes], failed: Callable[[Exception], bytes], box: Box
) -> None:
    try:
        async for frame in frames:
            box.put(frame)
            await box.room()
    except Exception as error:
        box.put(failed(error))
    finally:
        box.close()

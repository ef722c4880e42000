"""The box between an answer and its transport: joined writes, pings in silence, no lost end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from edgeserve.http.sse import BOX_BYTES, PING, events


def failed(error: Exception) -> bytes:
    return f"failed: {error}".encode()


async def collect(frames: AsyncIterator[bytes], ping_s: float = 10.0) -> list[bytes]:
    return [data async for data in events(frames, failed, ping_s)]


def test_silence_is_filled_with_comments() -> None:
    async def frames() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0.1)
        yield b"b"

    data = asyncio.run(collect(frames(), ping_s=0.03))
    assert data[0] == b"a" and data[-1] == b"b"
    assert set(data[1:-1]) == {PING} and len(data) >= 4


def test_frames_that_wait_are_written_together() -> None:
    async def frames() -> AsyncIterator[bytes]:
        for letter in (b"a", b"b", b"c"):
            yield letter

    assert asyncio.run(collect(frames())) == [b"abc"]


def test_a_failure_is_the_last_frame() -> None:
    async def frames() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0)
        raise ValueError("x")

    assert b"".join(asyncio.run(collect(frames()))) == b"afailed: x"


def test_a_reader_that_stops_ends_the_frames() -> None:
    ended: list[str] = []

    async def frames() -> AsyncIterator[bytes]:
        try:
            yield b"a"
            await asyncio.sleep(60)
        finally:
            ended.append("yes")

    async def main() -> None:
        stream = events(frames(), failed)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == ["yes"]


def test_a_slow_transport_holds_the_frames_back() -> None:
    made = 0

    async def frames() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(100):
            made += 1
            yield b"x" * (BOX_BYTES // 4)

    async def main() -> int:
        stream = events(frames(), failed)
        size = len(await anext(stream))
        assert made <= 8
        return size + sum([len(data) async for data in stream])

    assert asyncio.run(main()) == 100 * (BOX_BYTES // 4)
    assert made == 100

"""A server whose start fails, in whatever way, ends with the reason and leaves its port."""

from __future__ import annotations

import asyncio
import socket

import pytest

from edgeserve.config import EngineOptions, ServeOptions
from edgeserve.errors import CheckpointError
from edgeserve.http import serve as module
from edgeserve.http.listen import bind
from edgeserve.http.supervised import SupervisedFront


@pytest.mark.parametrize(
    "error", [CheckpointError("no such folder"), ZeroDivisionError(), MemoryError(), OSError(28)]
)
def test_any_failed_start_ends_the_server(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def start(_: SupervisedFront) -> None:
        await asyncio.sleep(0.05)  # the server listens meanwhile
        raise error

    monkeypatch.setattr(SupervisedFront, "start", start)
    sock = bind("127.0.0.1", 0)
    address = sock.getsockname()
    options = ServeOptions(engine=EngineOptions(checkpoint="x"))
    serving = module._serve(options, sock, lambda *_: None, never_ready)
    with pytest.raises(type(error)):
        asyncio.run(asyncio.wait_for(serving, 10))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 1)


def never_ready(url: str, *, model: str, chat: bool, key: bool) -> None:
    raise AssertionError(url, model, chat, key)

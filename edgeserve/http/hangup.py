"""Tells a request at once that its client has gone, and lets go of what the request held.

Falcon notices a hang-up only when it sends the next event of `resp.sse`, and never for
`resp.stream` or while a whole answer is made. So this wrapper reads on behind the request's body
and, when the client leaves, cancels the task that runs the request: every wait in it ends, every
`finally` and `async with` runs. Exit callbacks run at the end of the call whatever happened, also
when a stream was made and never started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Any

from edgeserve.errors import EdgeserveError, TooSlow

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

KEY = "edgeserve.client"  # in the ASGI scope
UNREAD: Message = {"type": "http.request", "body": b"", "more_body": True}
SILENCE_S = 60.0  # within a body


class Client:
    """The far end of one request. Belongs to the task that runs the request."""

    def __init__(self, receive: Receive, exits: ExitStack) -> None:
        self.gone = False
        self.on_exit = exits.callback
        self._receive = receive
        self._started = False
        self._reading = False
        self._refusal: EdgeserveError | None = None
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        if not self._started:
            # Falcon wants an event before it looks at the request. It gets an empty one, so that
            # nothing is read of a body that is refused by its length, its key or its path.
            self._started = True
            return UNREAD
        message = await self._read()
        if message["type"] == "http.disconnect":
            self.gone = True
        elif not message.get("more_body"):
            self.watch()
        return message

    async def _read(self) -> Message:
        """The next part of the body. Raises what the body was refused for."""
        if self._refusal is not None:
            raise self._refusal
        self._reading = True
        late = TooSlow("body", SILENCE_S)
        timer = asyncio.get_running_loop().call_later(SILENCE_S, self.refuse, late)
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if self._refusal is None:
                raise
            raise self._refusal from None
        finally:
            timer.cancel()
            self._reading = False

    def refuse(self, error: EdgeserveError) -> None:
        """Wait no longer for the rest of the body. No effect once it has been read."""
        self._refusal = error
        if self._reading and self._task is not None:
            self._task.cancel()

    def watch(self) -> None:
        """From now on, cancel the request when its client leaves. The body has been read."""
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()


class Hangup:
    """The ASGI wrapper."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as exits:
            client = scope[KEY] = Client(receive, exits)
            try:
                await self._app(scope, client.receive, send)
            except asyncio.CancelledError:
                if not client.gone:
                    raise
            finally:
                client.close()


def client_of(req: Any) -> Client:
    """The client of a Falcon request."""
    client = req.scope[KEY]
    assert isinstance(client, Client)
    return client

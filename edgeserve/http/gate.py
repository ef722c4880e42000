"""While the model loads, after it failed and while the server drains, only health answers."""

from __future__ import annotations

from falcon.asgi import Request, Response

from edgeserve.errors import EngineUnavailable, ModelLoading
from edgeserve.http.drain import Drain
from edgeserve.http.front import Front

OPEN = ("health", "metrics")


class Gate:
    """Middleware."""

    def __init__(self, front: Front, drain: Drain) -> None:
        self._front = front
        self._drain = drain

    async def process_request(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        if req.path.lstrip("/").startswith(OPEN) or req.method == "OPTIONS":
            return
        if self._front.state == "failed":
            raise EngineUnavailable(self._front.reason, retry_after_s=5)
        if self._front.model is None:
            raise ModelLoading(self._front.name)
        if req.method == "POST":
            self._drain.check()

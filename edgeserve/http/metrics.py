"""`GET /metrics`: Prometheus text."""

from __future__ import annotations

from falcon.asgi import Request, Response

from edgeserve.http.serving import Serving
from edgeserve.metrics import CONTENT_TYPE


class MetricsText:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        resp.content_type = CONTENT_TYPE
        resp.data = self._serving.metrics.text()

    on_head = on_get

"""`GET /`: some clients look whether anybody is there before they ask for more."""

from __future__ import annotations

import falcon
import orjson
from falcon.asgi import Request, Response

from edgeserve import __version__

BODY = orjson.dumps(
    {"name": "edgeserve", "version": __version__, "api": "/v1", "health": "/health"}
)


class Root:
    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        resp.content_type = falcon.MEDIA_JSON
        resp.data = BODY

    on_head = on_get

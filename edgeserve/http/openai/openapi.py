"""`GET /openapi.json`."""

from __future__ import annotations

from functools import cached_property

import falcon
import orjson
from falcon.asgi import Request, Response

from edgeserve import __version__
from edgeserve.http.serving import Serving
from edgeserve.protocol.openai.openapi import document


class OpenApi:
    """Made when it is first asked for."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    @cached_property
    def _body(self) -> bytes:
        return orjson.dumps(document(__version__, self._serving.names))

    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        resp.content_type = falcon.MEDIA_JSON
        resp.data = self._body

    on_head = on_get

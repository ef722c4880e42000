"""`GET /v1/models` and `/v1/models/{id}`."""

from __future__ import annotations

from typing import Any

import falcon
import orjson
from falcon.asgi import Request, Response

from edgeserve.http.serving import Serving
from edgeserve.protocol.openai.model_card import model_card


class Models:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_get(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        cards = [card(self._serving, name) for name in self._serving.names]
        answer(resp, {"object": "list", "data": cards})

    on_head = on_get


class Model:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_get(self, req: Request, resp: Response, name: str) -> None:  # noqa: ARG002
        self._serving.model(name)
        answer(resp, card(self._serving, name))

    on_head = on_get


def card(serving: Serving, name: str) -> dict[str, Any]:
    return model_card(serving.model(name).info, name, names=serving.names, created=serving.created)


def answer(resp: Response, body: dict[str, Any]) -> None:
    resp.content_type = falcon.MEDIA_JSON
    resp.data = orjson.dumps(body)

"""`POST /tokenize` and `POST /detokenize`: the tokenizer alone; no replica is asked."""

from __future__ import annotations

import falcon
from falcon.asgi import Request, Response

from edgeserve.http.limits import read_body
from edgeserve.http.serving import Serving
from edgeserve.protocol.openai.tokenize import (
    detokenized,
    read_detokenize,
    read_tokenize,
    tokenized,
    tokenizing,
)


class Tokenize:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_post(self, req: Request, resp: Response) -> None:
        serving = self._serving
        request = read_tokenize(await read_body(req, serving.options.max_body_bytes))
        asked = tokenizing(request)
        model = serving.model(request.model)
        ids = await model.encoder.tokenize(asked.prompt, asked.params, special=asked.special)
        wants_names = request.return_token_strs or request.with_pieces
        names = await serving.vocabulary(model) if wants_names else None
        limit = model.info.limits.max_model_len
        resp.content_type = falcon.MEDIA_JSON
        resp.data = tokenized(request, ids, names, max_model_len=limit)


class Detokenize:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_post(self, req: Request, resp: Response) -> None:
        serving = self._serving
        request = read_detokenize(await read_body(req, serving.options.max_body_bytes))
        model = serving.model(request.model)
        text = await model.encoder.detokenize(request.tokens)
        resp.content_type = falcon.MEDIA_JSON
        resp.data = detokenized(text)

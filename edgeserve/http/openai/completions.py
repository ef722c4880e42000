"""`POST /v1/completions`."""

from __future__ import annotations

from falcon.asgi import Request, Response

from edgeserve.http.limits import read_body
from edgeserve.http.openai.generation import prompt_told, send, start, token_names
from edgeserve.http.serving import Serving
from edgeserve.protocol.chunk import Chunks
from edgeserve.protocol.openai.completion import completion_call, read_completion
from edgeserve.protocol.openai.completion_wire import CompletionWire


class Completions:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def on_post(self, req: Request, resp: Response) -> None:
        serving = self._serving
        request = read_completion(await read_body(req, serving.options.max_body_bytes))
        call = completion_call(request)
        model = serving.model(request.model)
        names = await token_names(serving, model, call)
        vocabulary = names if request.logprobs is not None else None
        answer = await start(serving, req, model, call)
        wire = CompletionWire(
            request,
            answer,
            vocabulary,
            prompt_told(answer, names, request.prompt_logprobs),
            model=request.model or model.name,
            fingerprint=f"fp_{model.info.key[:12]}",
        )
        chunks = Chunks(
            answer, echo=call.echo, vocabulary=vocabulary, alternatives=request.logprobs or 0
        )
        await send(req, resp, answer, chunks, wire, stream=request.streams)

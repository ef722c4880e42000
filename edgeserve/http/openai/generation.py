"""From an admitted answer to a response, whole or streamed, for any text API."""

from __future__ import annotations

from functools import partial

import falcon
from falcon.asgi import Request, Response

from edgeserve.errors import InvalidRequest
from edgeserve.http.fault import told
from edgeserve.http.hangup import client_of
from edgeserve.http.record import Record
from edgeserve.http.request_id import record_of
from edgeserve.http.serving import Serving
from edgeserve.http.sse import events
from edgeserve.pipeline.answer import Answer
from edgeserve.pipeline.call import Call
from edgeserve.pipeline.model import ServedModel
from edgeserve.protocol.chunk import Chunks
from edgeserve.protocol.openai.model_card import STREAMING
from edgeserve.protocol.openai.prompt_logprobs import PromptTold
from edgeserve.protocol.reply import Wire, frames, whole
from edgeserve.protocol.vocabulary import Vocabulary

HEADER_CHARS = 1000


async def token_names(serving: Serving, model: ServedModel, call: Call) -> Vocabulary | None:
    """The names of the model's tokens, when the answer tells logprobs."""
    if not call.params.wants_logprobs:
        return None
    names = await serving.vocabulary(model)
    return names.with_special() if call.params.skip_special_tokens is False else names


def prompt_told(
    answer: Answer, names: Vocabulary | None, alternatives: int | None
) -> PromptTold | None:
    if names is None or alternatives is None:
        return None
    return PromptTold(answer, names, alternatives)


async def start(serving: Serving, req: Request, model: ServedModel, call: Call) -> Answer:
    """The admitted call; from here on it is cancelled whenever the request ends."""
    least = serving.options.min_request_priority
    if call.priority < least:
        raise InvalidRequest(
            f"'priority' must be at least {least} on this server", param="priority"
        )
    answer = await model.start(call)
    record_of(req).answer = answer
    serving.drain.answers.add(answer)
    on_exit = client_of(req).on_exit
    on_exit(serving.drain.answers.discard, answer)
    on_exit(answer.cancel)
    return answer


async def send(
    req: Request, resp: Response, answer: Answer, chunks: Chunks, wire: Wire, *, stream: bool
) -> None:
    resp.set_header("X-Edgeserve-Seed", str(answer.seed))
    resp.set_header("X-TRTMC-Streaming", STREAMING)
    if answer.clipped:
        resp.set_header("X-Edgeserve-Max-Tokens", str(answer.max_tokens))
    if answer.relaxed:
        relaxed = answer.relaxed.encode("unicode_escape").decode()  # line breaks too
        resp.set_header("X-Edgeserve-Relaxed", relaxed[:HEADER_CHARS])
    if not stream:
        resp.content_type = falcon.MEDIA_JSON
        resp.data = await whole(answer, chunks, wire)
        return
    record = record_of(req)
    record.streams = True
    resp.content_type = "text/event-stream"
    resp.set_header("Cache-Control", "no-cache")
    resp.set_header("X-Accel-Buffering", "no")
    resp.stream = events(frames(answer, chunks, wire), partial(_failed, wire, record))


def _failed(wire: Wire, record: Record, error: Exception) -> bytes:
    info = told(error, record.request_id)
    record.code = info.code
    return wire.failed(info)

"""One log line and one set of measurements per request, at its very end."""

from __future__ import annotations

from functools import partial

from falcon.asgi import Request, Response

from edgeserve.http.drain import Drain
from edgeserve.http.hangup import Client, client_of
from edgeserve.http.record import CLIENT_GONE, Record
from edgeserve.http.request_id import record_of
from edgeserve.log import Log
from edgeserve.metrics import Metrics

LOG = Log("http")


class Access:
    """Middleware. The end is told by the hang-up wrapper, so it comes whatever happened."""

    def __init__(self, metrics: Metrics, drain: Drain, *, every: bool) -> None:
        self._every = every  # also what went well is worth a line at level info
        self._metrics = metrics
        self._drain = drain

    async def process_request(self, req: Request, resp: Response) -> None:  # noqa: ARG002
        client = client_of(req)
        self._drain.enter(client)
        client.on_exit(partial(self._end, record_of(req), client))

    async def process_response(
        self, req: Request, resp: Response, resource: object, req_succeeded: bool
    ) -> None:
        del req_succeeded
        record = record_of(req)
        record.status = resp.status_code
        if resource is not None:
            record.route = req.uri_template or record.route

    def _end(self, record: Record, client: Client) -> None:
        self._drain.leave(client)
        status = CLIENT_GONE if client.gone else record.status
        self._metrics.request(record.route, status, record.seconds)
        tokens: dict[str, int | bool] = {}
        if record.answer is not None:
            tokens = {
                "stream": record.streams,
                "prompt_tokens": record.answer.prompt_tokens,
                "completion_tokens": record.answer.completion_tokens,
                "cached_tokens": record.answer.cached_tokens,
            }
            if status == 200 and record.code is None:
                self._metrics.answered(record.answer.usage)
        broken = status >= 500 and not record.route.startswith("/health")
        write = LOG.info if self._every or broken else LOG.debug
        write(
            "request",
            id=record.request_id,
            method=record.method,
            route=record.route,
            status=status,
            ms=round(record.seconds * 1000, 2),
            **({"code": record.code} if record.code else {}),
            **tokens,
        )

"""Every failure before the headers becomes an answer in OpenAI's form."""

from __future__ import annotations

from typing import Any

import falcon
from falcon.asgi import App, Request, Response

from edgeserve.errors import (
    EdgeserveError,
    ErrorInfo,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
)
from edgeserve.http.request_id import record_of
from edgeserve.log import Log
from edgeserve.protocol.openai.error import error_body

LOG = Log("http")


def told(error: Exception, request_id: str) -> ErrorInfo:
    """What the client learns. A fault goes to the log, and the client learns that it is there."""
    if isinstance(error, EdgeserveError):
        return error.info()
    LOG.fault("fault", error, id=request_id)
    return InternalError().info()


def answer_faults(app: App[Request, Response]) -> None:
    app.add_error_handler(Exception, _on_fault)
    app.add_error_handler(falcon.HTTPError, _on_falcon)
    app.add_error_handler(EdgeserveError, _on_fault)


async def _on_fault(
    req: Request,
    resp: Response,
    error: Exception,
    params: dict[str, Any],  # noqa: ARG001
) -> None:
    record = record_of(req)
    info = told(error, record.request_id)
    record.code = info.code
    resp.stream = None
    resp.status = info.status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = error_body(info)
    if info.retry_after_s is not None:
        resp.set_header("Retry-After", str(min(max(info.retry_after_s, 1), 60)))


async def _on_falcon(
    req: Request, resp: Response, error: falcon.HTTPError, params: dict[str, Any]
) -> None:
    """Falcon's own refusals: routes, methods, malformed headers."""
    ours: EdgeserveError
    if error.status_code == 404:
        ours = NotFound(f"no route {req.method} here; see /v1/models and the documentation")
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "") if isinstance(error.headers, dict) else ""
        resp.set_header("Allow", allowed)
        ours = MethodNotAllowed(f"this route does not answer {req.method}; use {allowed}")
    elif error.status_code < 500:
        ours = InvalidRequest(error.description or error.title or "malformed request")
    else:
        await _on_fault(req, resp, error, params)
        return
    await _on_fault(req, resp, ours, params)

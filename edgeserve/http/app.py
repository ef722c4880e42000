"""The HTTP application: who answers which route. Assembly only."""

from __future__ import annotations

from typing import Any

from falcon.asgi import App, Request, Response

from edgeserve.config import ServeOptions
from edgeserve.http.access import Access
from edgeserve.http.auth import KeyCheck
from edgeserve.http.fault import answer_faults
from edgeserve.http.front import Front
from edgeserve.http.gate import Gate
from edgeserve.http.hangup import Hangup
from edgeserve.http.health import Health, Live, Ready
from edgeserve.http.metrics import MetricsText
from edgeserve.http.openai.chat import ChatCompletions
from edgeserve.http.openai.completions import Completions
from edgeserve.http.openai.models import Model, Models
from edgeserve.http.openai.openapi import OpenApi
from edgeserve.http.openai.tokenize import Detokenize, Tokenize
from edgeserve.http.request_id import RequestId
from edgeserve.http.root import Root
from edgeserve.http.serving import Serving


class Application:
    """The ASGI app, with what its server needs to know of it."""

    def __init__(self, front: Front, options: ServeOptions) -> None:
        self.serving = Serving(front, options)
        self.asgi = Hangup(_routes(self.serving, options))


def create_app(front: Front, options: ServeOptions) -> Hangup:
    """The ASGI app of one front, for any ASGI server."""
    return Application(front, options).asgi


def _routes(serving: Serving, options: ServeOptions) -> App[Request, Response]:
    middleware: list[Any] = [
        RequestId(),
        Access(serving.metrics, serving.drain, every=options.access_log),
        KeyCheck(options.api_keys, protect_metrics=options.protect_metrics),
        Gate(serving.front, serving.drain),
    ]
    app: App[Request, Response] = App(middleware=middleware)
    app.req_options.strip_url_path_trailing_slash = True
    answer_faults(app)
    app.add_route("/", Root())
    app.add_route("/health", Health(serving))
    app.add_route("/health/live", Live())
    app.add_route("/health/ready", Ready(serving))
    app.add_route("/metrics", MetricsText(serving))
    app.add_route("/openapi.json", OpenApi(serving))
    app.add_route("/v1/models", Models(serving))
    app.add_route("/v1/models/{name:path}", Model(serving))
    app.add_route("/v1/chat/completions", ChatCompletions(serving))
    app.add_route("/v1/completions", Completions(serving))
    app.add_route("/tokenize", Tokenize(serving))
    app.add_route("/detokenize", Detokenize(serving))
    return app

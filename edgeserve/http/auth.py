"""API keys. None set: auth headers are ignored. Set: `/v1/*` and the tokenizer need one."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any

from falcon.asgi import Request, Response

from edgeserve.errors import Unauthorized

KEYED = ("/v1/", "/tokenize", "/detokenize")


class KeyCheck:
    """Middleware. Compares bytes, in constant time, and all keys each time.

    It looks at the route that was found, not at the path that was sent: there are many ways to
    write a path (`//v1/models`), and one route.
    """

    def __init__(self, keys: Iterable[str], *, protect_metrics: bool) -> None:
        self._keys = tuple(key.encode() for key in keys)
        self._metrics = protect_metrics

    async def process_resource(
        self,
        req: Request,
        resp: Response,
        resource: object,  # noqa: ARG002
        params: dict[str, Any],  # noqa: ARG002
    ) -> None:
        route = req.uri_template or ""
        if not self._keys or req.method == "OPTIONS" or not self._needs_key(route):
            return
        given = [key for pair in req.scope["headers"] if (key := _key(*pair)) is not None]
        matches = [hmac.compare_digest(key, ours) for key in given for ours in self._keys]
        if not any(matches):
            resp.set_header("WWW-Authenticate", "Bearer")
            raise Unauthorized

    def _needs_key(self, route: str) -> bool:
        return route.startswith(KEYED) or (self._metrics and route == "/metrics")


def _key(name: bytes, value: bytes) -> bytes | None:
    """The key in a header, in either style."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, key = value.strip().partition(b" ")
        return key.strip() if scheme.lower() == b"bearer" else None
    return None

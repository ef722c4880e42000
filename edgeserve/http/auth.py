"""API keys. None set: auth headers are ignored. Set: `/v1/*` needs one of them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from falcon.asgi import Request, Response

from edgeserve.errors import Unauthorized


class KeyCheck:
    """Middleware. Compares bytes, in constant time, and all keys each time."""

    def __init__(self, keys: Iterable[str], *, protect_metrics: bool) -> None:
        self._keys = tuple(key.encode() for key in keys)
        self._metrics = protect_metrics

    async def process_request(self, req: Request, resp: Response) -> None:
        if not self._keys or req.method == "OPTIONS" or not self._needs_key(req.path):
            return
        given = [key for pair in req.scope["headers"] if (key := _key(*pair)) is not None]
        matches = [hmac.compare_digest(key, ours) for key in given for ours in self._keys]
        if not any(matches):
            resp.set_header("WWW-Authenticate", "Bearer")
            raise Unauthorized

    def _needs_key(self, path: str) -> bool:
        protected = path == "/v1" or path.startswith("/v1/")
        return protected or (self._metrics and path.rstrip("/") == "/metrics")


def _key(name: bytes, value: bytes) -> bytes | None:
    """The key in a header, in either style."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, key = value.strip().partition(b" ")
        return key.strip() if scheme.lower() == b"bearer" else None
    return None

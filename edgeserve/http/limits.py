"""Request bodies within their limit: by Content-Length before anything is read, else counted."""

from __future__ import annotations

from falcon.asgi import Request

from edgeserve.errors import BodyTooLarge, Cancelled, InvalidRequest
from edgeserve.http.hangup import client_of


async def read_body(req: Request, limit: int, flag: str = "--max-body-bytes") -> bytes:
    """The whole body. Raises `BodyTooLarge`, which names the flag, or `Cancelled` when the client
    left before its end."""
    coding = req.get_header("Content-Encoding") or "identity"
    if coding.strip().lower() != "identity":
        raise InvalidRequest(
            f"bodies with Content-Encoding '{coding[:40]}' are not read; send it uncompressed",
            param="Content-Encoding",
        )
    length = req.content_length
    if length is not None and length > limit:
        raise BodyTooLarge(limit, flag)
    parts: list[bytes] = []
    size = 0
    if length != 0:
        async for part in req.stream:
            size += len(part)
            if size > limit:
                raise BodyTooLarge(limit, flag)
            parts.append(part)
    client = client_of(req)
    if client.gone:
        raise Cancelled
    client.watch()
    return parts[0] if len(parts) == 1 else b"".join(parts)

"""`X-Request-ID`: a valid one is kept, none gets a fresh one, any other is a 400."""

from __future__ import annotations

import re
import secrets
from typing import Any

from falcon.asgi import Request, Response

from edgeserve.errors import InvalidRequest
from edgeserve.http.record import Record

HEADER = "X-Request-ID"
VALID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z")


class RequestId:
    """Middleware. The first one: what is refused later has an id too."""

    async def process_request(self, req: Request, resp: Response) -> None:
        given = [value for name, value in req.scope["headers"] if name == b"x-request-id"]
        valid = len(given) == 1 and VALID.match(given[0])
        request_id = given[0].decode() if valid else f"req-{secrets.token_hex(16)}"
        req.context.record = Record(request_id, req.method)
        resp.set_header(HEADER, request_id)
        if given and not valid:
            raise InvalidRequest(
                f"the header {HEADER} must be given once, with 1 to 128 letters, digits or any "
                "of ._:/- after a letter or digit",
                param=HEADER,
            )


def record_of(req: Any) -> Record:
    record = req.context.record
    assert isinstance(record, Record)
    return record

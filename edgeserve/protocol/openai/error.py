"""Errors in OpenAI's form: as a body, and as the last event of a stream."""

from __future__ import annotations

import orjson

from edgeserve.errors import ErrorInfo

DONE = b"data: [DONE]\n\n"


def error_body(error: ErrorInfo) -> bytes:
    return orjson.dumps(
        {
            "error": {
                "message": error.message,
                "type": error.type,
                "param": error.param,
                "code": error.code,
            }
        }
    )


def error_event(error: ErrorInfo) -> bytes:
    """After the headers nothing but an event can tell of a failure. It is never left out."""
    return b"data: " + error_body(error) + b"\n\n" + DONE

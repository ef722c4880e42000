"""The vocabulary of errors: each way to fail has a class that knows its status, type and code.

A call site gives facts; the class makes the sentence: what happened, the numbers, the way out.
No message carries a stack, a path of the server, a prompt or an output. `docs/errors.md` is
generated from this file. Errors cross the wire as `ErrorInfo` and come back as `EdgeserveError`.
"""

from __future__ import annotations

import msgspec

INVALID = "invalid_request_error"


class ErrorInfo(msgspec.Struct, frozen=True):
    """An error as data: what the wire and the HTTP bodies are made from."""

    status: int
    type: str
    code: str
    message: str
    param: str | None = None
    retry_after_s: int | None = None


class EdgeserveError(Exception):
    """Anything a user may be told. Subclasses set `status`, `type` and `code`."""

    status: int = 500
    type: str = "server_error"
    code: str = "internal_error"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    def info(self) -> ErrorInfo:
        return ErrorInfo(
            self.status, self.type, self.code, self.message, self.param, self.retry_after_s
        )

    @staticmethod
    def from_info(info: ErrorInfo) -> EdgeserveError:
        """The error that crossed the wire; its class is the plain base with the same facts."""
        error = EdgeserveError(info.message, param=info.param, retry_after_s=info.retry_after_s)
        error.status, error.type, error.code = info.status, info.type, info.code
        return error


# Requests ------------------------------------------------------------------------------------


class InvalidRequest(EdgeserveError):
    """A body, field or value that this server does not accept."""

    status = 400
    type = INVALID
    code = "invalid_value"


class UnknownField(InvalidRequest):
    """A field that is not part of the request."""

    code = "unknown_parameter"

    def __init__(self, field: str) -> None:
        super().__init__(f"unknown field '{field}'; remove it or check its spelling", param=field)


class InvalidJson(InvalidRequest):
    """The body is not JSON."""

    code = "invalid_json"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the request body is not valid JSON: {reason}")


class InvalidUnicode(InvalidRequest):
    """A string of the body has half of a surrogate pair."""

    code = "invalid_unicode"

    def __init__(self, param: str | None) -> None:
        where = f"'{param}'" if param else "a string of the request body"
        super().__init__(f"{where} has a lone surrogate escape; send whole characters", param=param)


class WrongType(InvalidRequest):
    """A value of the wrong JSON type."""

    code = "invalid_type"

    def __init__(self, param: str | None, expected: str, got: str) -> None:
        what = f"'{param}'" if param else "the request body"
        super().__init__(f"{what} must be {expected}, not {got}", param=param)


class MissingField(InvalidRequest):
    """A field that the request needs."""

    code = "missing_required_parameter"

    def __init__(self, field: str) -> None:
        super().__init__(f"missing required field '{field}'", param=field)


class PromptTooLong(InvalidRequest):
    """The prompt does not leave room for one output token."""

    code = "context_length_exceeded"

    def __init__(
        self, tokens: int, limit: int, *, param: str = "messages", about: bool = False
    ) -> None:
        counted = f"about {tokens}" if about else str(tokens)
        super().__init__(
            f"the prompt has {counted} tokens, {tokens - limit} more than this server's limit of "
            f"{limit}; shorten it, or start the server with a larger --max-kv-cache-capacity or "
            "--max-input-len",
            param=param,
        )


class UnsupportedFeature(InvalidRequest):
    """Something the API knows and this model or server does not do."""

    code = "unsupported_feature"


class NoTemplate(InvalidRequest):
    """Chat was asked of a model that has no chat template."""

    code = "no_chat_template"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"model '{model}' has no chat template; use /v1/completions, or start the server "
            "with --chat-template FILE",
            param="messages",
        )


class Unauthorized(EdgeserveError):
    """No key, or a wrong one."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"

    def __init__(self) -> None:
        super().__init__("missing or invalid API key; send 'Authorization: Bearer KEY'")


class ModelNotFound(EdgeserveError):
    """The request names a model that is not served here."""

    status = 404
    type = "not_found_error"
    code = "model_not_found"

    def __init__(self, name: str, served: list[str]) -> None:
        shown = name if len(name) <= 100 else f"{name[:100]}..."
        super().__init__(
            f"model '{shown}' is not served here; served: {', '.join(served)}", param="model"
        )


class NotFound(EdgeserveError):
    """No such route."""

    status = 404
    type = "not_found_error"
    code = "not_found"


class MethodNotAllowed(EdgeserveError):
    """The route exists with other methods."""

    status = 405
    type = INVALID
    code = "method_not_allowed"


class BodyTooLarge(EdgeserveError):
    """The request body is over its limit."""

    status = 413
    type = INVALID
    code = "body_too_large"

    def __init__(self, limit_bytes: int, flag: str = "--max-body-bytes") -> None:
        super().__init__(
            f"the request body is larger than {limit_bytes} bytes; send less, or start the "
            f"server with a larger {flag}"
        )


class HeadTooLarge(EdgeserveError):
    """The headers of the request are over the limit."""

    status = 431
    type = INVALID
    code = "headers_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the request's headers are larger than {limit_bytes} bytes; send less")


class TooSlow(EdgeserveError):
    """A part of the request did not come in time."""

    status = 408
    type = INVALID
    code = "request_too_slow"

    def __init__(self, part: str, limit_s: float) -> None:
        super().__init__(f"the request's {part} did not come for {limit_s:g} s; send it again")


class Busy(EdgeserveError):
    """All seats and queue places are taken, or the wait in the queue was too long."""

    status = 429
    type = "rate_limit_error"
    code = "server_busy"


class TimedOut(EdgeserveError):
    """The request ran longer than --request-timeout."""

    status = 504
    type = "timeout_error"
    code = "request_timeout"


# The server ----------------------------------------------------------------------------------


class ModelLoading(EdgeserveError):
    """The model is not ready yet."""

    status = 503
    type = "service_unavailable_error"
    code = "model_loading"

    def __init__(self, model: str, retry_after_s: int = 1) -> None:
        super().__init__(f"model '{model}' is loading; try again", retry_after_s=retry_after_s)


class EngineUnavailable(EdgeserveError):
    """The engine died or was stopped; the reason is in the message."""

    status = 503
    type = "service_unavailable_error"
    code = "engine_unavailable"


class ShuttingDown(EdgeserveError):
    """The server drains and takes no new work."""

    status = 503
    type = "service_unavailable_error"
    code = "server_unavailable"

    def __init__(self) -> None:
        super().__init__("the server is shutting down; send the request elsewhere or later")


class Cancelled(EdgeserveError):
    """The request was cancelled before it ended (by its client or an operator)."""

    status = 499
    type = "cancelled_error"
    code = "request_cancelled"

    def __init__(self) -> None:
        super().__init__("the request was cancelled")


class InternalError(EdgeserveError):
    """A fault of this server or of a plugin; details are in its log only."""

    def __init__(self, what: str = "the server failed on this request") -> None:
        super().__init__(f"{what}; the log has the details")


# Before serving: checkpoints, bundles, families, configuration. Shown by the CLI. ----------------


class StartError(EdgeserveError):
    """Something that stops a command before it serves: one sentence, exit code `exit_code`."""

    code = "start_failed"
    exit_code: int = 1


class BadConfig(StartError):
    """A flag, an option or their combination is wrong."""

    code = "invalid_configuration"
    exit_code = 2


class CheckpointError(StartError):
    """A checkpoint that cannot be found, fetched or read."""

    code = "checkpoint_error"


class BundleError(StartError):
    """A bundle that cannot be built, read or used here."""

    code = "bundle_error"


class FamilyError(StartError):
    """No family, two families or a wrong contract for a model type."""

    code = "family_error"


class GraphError(StartError):
    """An engine graph that is not well formed, or that a backend cannot run."""

    code = "graph_error"

"""Structured lines: one event each, `key=value`. No prompt, no output, no secret is ever a value.

    time=2026-01-31T12:00:00.123Z level=info part=http event=request status=200 ms=12.5

A leaf. `configure` is called once by the process that owns stderr; without it nothing is written
but warnings, as Python's logging does.
"""

from __future__ import annotations

import io
import logging
import sys
import time
import traceback
from typing import TextIO

Value = str | int | float | bool | None
LEVELS = ("debug", "info", "warning", "error")


class Log:
    """Writes the events of one part of the program."""

    def __init__(self, part: str) -> None:
        self._logger = logging.getLogger(f"edgeserve.{part}")

    def debug(self, event: str, **fields: Value) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Value) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Value) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Value) -> None:
        self._write(logging.ERROR, event, fields)

    def fault(self, event: str, error: BaseException, **fields: Value) -> None:
        """An unexpected exception: its type and where it was raised. Its text is left out, since
        it may quote a prompt."""
        self.error(event, **fields, error=type(error).__name__, at=_where(error))

    def _write(self, level: int, event: str, fields: dict[str, Value]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", _line(event, fields))


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Write lines of `level` and above to `stream` (stderr)."""
    handler = logging.StreamHandler(stream or Stderr())
    handler.setFormatter(LineFormatter())
    for name in ("edgeserve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
    logging.getLogger("edgeserve").setLevel(level.upper())
    # uvicorn's own lines tell what ours tell already, except that something went wrong.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


class Stderr(io.TextIOBase):
    """sys.stderr as it is at that moment: progress bars put a proxy there, which writes lines above
    them."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class LineFormatter(logging.Formatter):
    """Any log record as one line. Tracebacks are cut to type and place."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.gmtime(record.created)
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}.{int(record.msecs):03d}Z"
        part = record.name.removeprefix("edgeserve.")
        head = f"time={stamp} level={record.levelname.lower()} part={part}"
        message = record.getMessage().strip()
        if message.startswith("event="):
            return f"{head} {message}"
        error = record.exc_info[1] if record.exc_info else None
        fields: dict[str, Value] = {"text": message}
        if error is not None:
            fields |= {"error": type(error).__name__, "at": _where(error)}
        return f"{head} {_line('note', fields)}"


def _line(event: str, fields: dict[str, Value]) -> str:
    return " ".join([f"event={event}", *(f"{key}={_text(value)}" for key, value in fields.items())])


def _text(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    if text and text.isascii() and text.isprintable() and not any(c in text for c in ' "=\\'):
        return text
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\u{ord(char):04x}"


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
    return "<".join(reversed(places))

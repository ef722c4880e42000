"""Reads the small JSON files of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgeserve.errors import CheckpointError

_LIMIT = 256 << 20  # bytes; the largest real tokenizer.json takes about 40 MiB


def read_text(path: Path) -> str:
    """The whole file as text."""
    try:
        if path.stat().st_size > _LIMIT:
            raise CheckpointError(f"{path.name} is larger than {_LIMIT} bytes")
        return path.read_text("utf-8-sig")  # some editors put a byte order mark first
    except OSError as error:
        raise CheckpointError(f"cannot read {path.name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CheckpointError(f"{path.name} is not UTF-8 text") from None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} when there is no such file."""
    if not path.is_file():
        return {}
    try:
        text = read_text(path)
        value = json.loads(text)
        if "\\ud" in text.lower():  # half a character, escaped: it can be written nowhere
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is not valid JSON: {str(error)[:100]}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path.name} is not a JSON object")
    return value

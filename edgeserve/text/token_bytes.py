"""The bytes that a vocabulary's pieces stand for, as the tokenizer's own decoder would write them.

A decoder works on whole texts; here each piece is decoded alone, to bytes, so that a token that
holds half a character keeps its half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from edgeserve.errors import CheckpointError

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_IGNORED = frozenset({"Fuse", "Strip"})  # act between pieces, or on the ends of a text

Step = Callable[[str], "str | bytes"]


def piece_bytes(pieces: Iterable[str], decoder: Mapping[str, Any] | None) -> Iterator[bytes]:
    """Bytes of each piece under the `decoder` of tokenizer.json."""
    steps = list(_steps(decoder)) if decoder else []
    for piece in pieces:
        value: str | bytes = piece
        for step in steps:
            if isinstance(value, bytes):
                break
            value = step(value)
        yield value.encode("utf-8", "replace") if isinstance(value, str) else value


def _steps(decoder: Mapping[str, Any]) -> Iterator[Step]:
    kind = decoder.get("type")
    if kind == "Sequence":
        for part in decoder.get("decoders", ()):
            yield from _steps(part)
    elif kind == "ByteLevel":
        yield _byte_level
    elif kind == "ByteFallback":
        yield _byte_fallback
    elif kind == "Metaspace":
        mark = decoder.get("replacement", "\u2581")
        yield lambda piece: piece.replace(mark, " ")
    elif kind == "Replace":
        yield _replace(decoder)
    elif kind == "BPEDecoder":
        suffix = decoder.get("suffix", "</w>")
        yield lambda piece: piece.replace(suffix, " ")
    elif kind == "WordPiece":
        prefix = decoder.get("prefix", "##")
        yield lambda piece: piece.removeprefix(prefix) if piece.startswith(prefix) else f" {piece}"
    elif kind not in _IGNORED:
        raise CheckpointError(f"the tokenizer's decoder {kind!r} is not supported")


def _replace(decoder: Mapping[str, Any]) -> Step:
    pattern, content = decoder.get("pattern", {}), decoder.get("content", "")
    if "String" in pattern:
        text = pattern["String"]
        return lambda piece: piece.replace(text, content)
    expression = re.compile(pattern.get("Regex", "(?!)"))
    return lambda piece: expression.sub(lambda _: content, piece)


def _byte_fallback(piece: str) -> str | bytes:
    match = _BYTE.fullmatch(piece)
    return bytes([int(match[1], 16)]) if match else piece


def _byte_level(piece: str) -> str | bytes:
    try:
        return piece.translate(_BYTES).encode("latin-1")
    except UnicodeEncodeError:
        return piece  # not made of mapped characters: the decoder leaves it as it is


def _alphabet() -> dict[int, int]:
    """GPT-2's printable stand-ins -> bytes; characters below 256 that stand for nothing go out of
    the range that latin-1 can write."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    table = dict.fromkeys(range(256), 0xFFFD)
    table |= {b: b for b in printable}
    table |= {256 + i: b for i, b in enumerate(others)}
    return table


_BYTES = _alphabet()

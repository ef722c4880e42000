"""Writes GGUF files byte by byte, good ones and bad ones."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TYPES = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8, "u64": 10}
_CODES = {"u32": "<I", "i32": "<i", "f32": "<f", "bool": "<?", "u64": "<Q"}


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind: str, value: Any) -> bytes:
    return text(value) if kind == "str" else struct.pack(_CODES[kind], value)


def entry(key: str, kind: str, value: Any) -> bytes:
    """A metadata entry; `kind` "[x]" is an array of x."""
    if not kind.startswith("["):
        return text(key) + struct.pack("<I", TYPES[kind]) + scalar(kind, value)
    item = kind[1:-1]
    head = struct.pack("<IIQ", 9, TYPES[item], len(value))
    return text(key) + head + b"".join(scalar(item, v) for v in value)


@dataclass
class Tensor:
    name: str
    shape: tuple[int, ...]  # row-major
    type: int  # GGUF number
    data: bytes
    offset: int | None = None  # instead of the next free one

    @staticmethod
    def f32(name: str, values: np.ndarray) -> Tensor:
        return Tensor(name, values.shape, 0, values.astype("<f4").tobytes())


@dataclass
class Gguf:
    metadata: list[bytes] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    magic: bytes = b"GGUF"
    version: bytes = struct.pack("<I", 3)
    alignment: int = 32
    counts: tuple[int, int] | None = None

    def add(self, key: str, kind: str, value: Any) -> Gguf:
        self.metadata.append(entry(key, kind, value))
        return self

    def bytes(self) -> bytes:
        tensors, kvs = self.counts or (len(self.tensors), len(self.metadata))
        head = self.magic + self.version + struct.pack("<QQ", tensors, kvs)
        head += b"".join(self.metadata)
        place, body = 0, b""
        for tensor in self.tensors:
            offset = place if tensor.offset is None else tensor.offset
            head += text(tensor.name) + struct.pack("<I", len(tensor.shape))
            head += b"".join(struct.pack("<Q", n) for n in reversed(tensor.shape))
            head += struct.pack("<IQ", tensor.type, offset)
            padded = tensor.data + bytes(-len(tensor.data) % self.alignment)
            body, place = body + padded, place + len(padded)
        return head + bytes(-len(head) % self.alignment) + body


def small() -> Gguf:
    """A tiny good file."""
    file = Gguf().add("general.architecture", "str", "llama")
    file.add("a.number", "u32", 7).add("a.flag", "bool", True).add("a.list", "[i32]", [1, -2])
    file.add("a.words", "[str]", ["x", "é", ""]).add("a.real", "f32", 0.5)
    rows = np.arange(64, dtype="f4").reshape(2, 32)
    file.tensors = [Tensor.f32("one", rows), Tensor("two", (3, 32), 2, bytes(range(54)))]
    return file

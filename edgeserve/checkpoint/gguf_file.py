"""A GGUF file as it is: metadata and a table of tensors over a mapped file.

Own parser, because every number in a header is checked against what the file can hold before
anything is allocated: a damaged, truncated or hostile file is one `CheckpointError`. Names here
are GGUF's; `gguf.py` gives the Hugging Face view.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeserve.checkpoint.formats import ggml
from edgeserve.errors import CheckpointError

_HEADER_LIMIT = 512 << 20  # bytes of metadata; the largest real vocabularies take about 20 MiB
_ARRAY_LIMIT = 1 << 24  # items of one metadata array
_DEPTH_LIMIT = 3  # arrays in arrays
_TENSOR_LIMIT = 1 << 20
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "<u1",  # bool
    10: "<u8",
    11: "<i8",
    12: "<f8",
}


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where one tensor lies: `offset` from the start of the file, `shape` row-major."""

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    size: int  # bytes


class GgufFile:
    """One open GGUF file. The mapping lives as long as this object or an array made from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _map_file(path)
        reader = _Reader(memoryview(self._map), path.name)
        tensors, kvs = _read_counts(reader)
        self.metadata: Mapping[str, Any] = _read_metadata(reader, kvs)
        self.tensors: Mapping[str, GgufTensor] = _read_tensors(
            reader, tensors, _alignment(reader, self.metadata)
        )

    def stored(self, tensor: GgufTensor) -> np.ndarray:
        """A read-only view: plain types in their shape, blocks as [rows, bytes per row] uint8."""
        plain = ggml.PLAIN.get(tensor.type)
        raw = np.frombuffer(self._map, np.uint8, tensor.size, tensor.offset)
        if plain is not None:
            return raw.view(plain).reshape(tensor.shape)
        values, size = ggml.block_size(tensor.type)
        return raw.reshape(-1, tensor.shape[-1] // values * size)


def read_architecture(path: Path) -> str:
    """`general.architecture`, which names the family; reads no further than it must."""
    reader = _Reader(memoryview(_map_file(path)), path.name)
    _, count = _read_counts(reader)
    for _ in range(count):
        key = reader.string("a metadata key")
        value = reader.value(reader.u32(key[:80]), f"metadata '{key[:80]}'")
        if key == "general.architecture" and isinstance(value, str):
            return value
    raise reader.fail("it does not say its general.architecture")


def _map_file(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise CheckpointError(f"{path.name} is empty; fetch it again") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path.name}: {error.strerror}") from None


class _Reader:
    """A cursor that refuses to leave the file."""

    def __init__(self, data: memoryview, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0

    def fail(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.name} is not a usable GGUF file: {what}")

    def take(self, size: int, what: str) -> memoryview:
        if size > len(self.data) - self.at or self.at + size > _HEADER_LIMIT:
            raise self.fail(f"{what} needs {size} bytes at {self.at}, past the end of the header")
        self.at += size
        return self.data[self.at - size : self.at]

    def u32(self, what: str) -> int:
        return int(struct.unpack("<I", self.take(4, what))[0])

    def u64(self, what: str) -> int:
        return int(struct.unpack("<Q", self.take(8, what))[0])

    def string(self, what: str) -> str:
        # Broken UTF-8 occurs in descriptions of real files; it does no harm there.
        return str(self.take(self.u64(what), what), "utf-8", "replace")

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self._array(what, depth)
        if kind not in _SCALARS:
            raise self.fail(f"{what} has the unknown type {kind}")
        dtype = np.dtype(_SCALARS[kind])
        value = np.frombuffer(self.take(dtype.itemsize, what), dtype)[0].item()
        return bool(value) if kind == 7 else value

    def _array(self, what: str, depth: int) -> list[Any]:
        kind, count = self.u32(what), self.u64(what)
        if depth >= _DEPTH_LIMIT:
            raise self.fail(f"{what} nests arrays deeper than {_DEPTH_LIMIT}")
        if count > _ARRAY_LIMIT:
            raise self.fail(f"{what} claims {count} items, over the limit of {_ARRAY_LIMIT}")
        if kind in _SCALARS:
            dtype = np.dtype(_SCALARS[kind])
            items = np.frombuffer(self.take(count * dtype.itemsize, what), dtype)
            return list((items != 0).tolist() if kind == 7 else items.tolist())
        if count * 8 > len(self.data) - self.at:  # a string or an array takes 8 bytes or more
            raise self.fail(f"{what} claims {count} items, more than the file can hold")
        return [self.value(kind, what, depth + 1) for _ in range(count)]


def _read_counts(reader: _Reader) -> tuple[int, int]:
    if bytes(reader.take(4, "the magic number")) != b"GGUF":
        raise reader.fail("it does not start with 'GGUF'")
    version = reader.u32("the version")
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        order = "; it is big-endian" if swapped in (2, 3) else ""
        raise reader.fail(f"version {version} is not supported, only 2 and 3{order}")
    tensors, kvs = reader.u64("the tensor count"), reader.u64("the metadata count")
    room = len(reader.data) - reader.at
    if tensors > _TENSOR_LIMIT or tensors * 32 + kvs * 13 > room:  # the smallest entries possible
        raise reader.fail(f"it claims {tensors} tensors and {kvs} metadata entries in {room} bytes")
    return tensors, kvs


def _read_metadata(reader: _Reader, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = reader.string("a metadata key")
        shown = f"metadata '{key[:80]}'"
        if key in metadata:
            raise reader.fail(f"{shown} occurs twice")
        metadata[key] = reader.value(reader.u32(shown), shown)
    return metadata


def _alignment(reader: _Reader, metadata: Mapping[str, Any]) -> int:
    value = metadata.get("general.alignment", 32)
    if not isinstance(value, int) or value <= 0 or value & (value - 1) or value > 1 << 20:
        raise reader.fail(f"general.alignment is {value!r}, not a power of two")
    return value


def _read_tensors(reader: _Reader, count: int, alignment: int) -> dict[str, GgufTensor]:
    found: dict[str, GgufTensor] = {}
    for _ in range(count):
        tensor = _read_tensor(reader, alignment)
        if tensor.name in found:
            raise reader.fail(f"tensor '{tensor.name}' occurs twice")
        found[tensor.name] = tensor
    base = -(-reader.at // alignment) * alignment
    placed = {
        t.name: GgufTensor(t.name, t.type, t.shape, base + t.offset, t.size) for t in found.values()
    }
    _check_places(reader, placed)
    return placed


def _read_tensor(reader: _Reader, alignment: int) -> GgufTensor:
    name = reader.string("a tensor name")
    what = f"tensor '{name[:80]}'"
    dims = reader.u32(what)
    if not 1 <= dims <= 4:
        raise reader.fail(f"{what} has {dims} dimensions")
    shape = tuple(reversed([reader.u64(what) for _ in range(dims)]))
    number, offset = reader.u32(what), reader.u64(what)
    kind = ggml.type_name(number)
    if kind is None:
        raise reader.fail(f"{what} has the type {number}, which cannot be read")
    values, size = ggml.block_size(kind)
    if 0 in shape or shape[-1] % values:
        raise reader.fail(f"{what} has the shape {list(shape)}, not whole blocks of {kind}")
    if offset % alignment:
        raise reader.fail(f"{what} lies at {offset}, not a multiple of {alignment}")
    total = size
    for extent in (*shape[:-1], shape[-1] // values):
        total *= extent  # a Python int: cannot overflow
    return GgufTensor(name, kind, shape, offset, total)


def _check_places(reader: _Reader, tensors: Mapping[str, GgufTensor]) -> None:
    end, last = 0, ""
    for tensor in sorted(tensors.values(), key=lambda t: t.offset):
        if tensor.offset + tensor.size > len(reader.data):
            raise reader.fail(
                f"tensor '{tensor.name}' ends at byte {tensor.offset + tensor.size} of "
                f"{len(reader.data)}; the file is truncated or damaged, fetch it again"
            )
        if tensor.offset < end:
            raise reader.fail(f"tensors '{last}' and '{tensor.name}' overlap")
        end, last = tensor.offset + tensor.size, tensor.name

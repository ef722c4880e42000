"""One safetensors file: a strict header over a mapped file.

Own parser, because the numbers of a header are checked against the file before anything is
allocated: a damaged, truncated or hostile file is one `CheckpointError`.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from edgeserve.errors import CheckpointError

_HEADER_LIMIT = 100_000_000  # bytes; the format's own limit
_DIMENSIONS_LIMIT = 16
# dtype name -> (name here, numpy type). bf16 and the 8-bit floats are kept as their bits.
DTYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "F64": ("f64", np.dtype("<f8")),
    "F32": ("f32", np.dtype("<f4")),
    "F16": ("f16", np.dtype("<f2")),
    "BF16": ("bf16", np.dtype("<u2")),
    "F8_E4M3": ("f8_e4m3", np.dtype("u1")),
    "F8_E5M2": ("f8_e5m2", np.dtype("u1")),
    "I64": ("i64", np.dtype("<i8")),
    "I32": ("i32", np.dtype("<i4")),
    "I16": ("i16", np.dtype("<i2")),
    "I8": ("i8", np.dtype("i1")),
    "U8": ("u8", np.dtype("u1")),
    "BOOL": ("bool", np.dtype("u1")),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where one tensor lies: bytes `start` to `stop` of the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class SafetensorsFile:
    """One open file. The mapping lives as long as this object or an array made from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _map_file(path)
        self.tensors: Mapping[str, Place] = self._parse()

    def stored(self, name: str) -> np.ndarray:
        """A read-only view in the logical shape."""
        place = self.tensors[name]
        raw = np.frombuffer(self._map, np.uint8, place.stop - place.start, place.start)
        return raw.view(DTYPES[place.dtype][1]).reshape(place.shape)

    def _fail(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.path.name} is not a usable safetensors file: {what}")

    def _parse(self) -> dict[str, Place]:
        size = len(self._map)
        length = int.from_bytes(self._map[:8], "little")
        if size < 8 or length > min(_HEADER_LIMIT, size - 8):
            raise self._fail(f"its header claims {length} bytes of the file's {size}")
        try:
            header = json.loads(self._map[8 : 8 + length], object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise self._fail(f"its header is not valid JSON ({str(error)[:100]})") from None
        if not isinstance(header, dict):
            raise self._fail("its header is not a JSON object")
        header.pop("__metadata__", None)
        base = 8 + length
        places = {name: self._place(name, entry, base) for name, entry in header.items()}
        self._check_places(places, base, size)
        return places

    def _place(self, name: str, entry: Any, base: int) -> Place:
        what = f"tensor '{name[:80]}'"
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(a), int(b)]}:
                pass
            case _:
                raise self._fail(f"{what} is not described by dtype, shape and data_offsets")
        if dtype not in DTYPES:
            raise self._fail(f"{what} has the type '{dtype[:20]}', which cannot be read")
        if len(shape) > _DIMENSIONS_LIMIT or not all(type(n) is int and n >= 0 for n in shape):
            raise self._fail(f"{what} has a shape that is not a list of sizes")
        if b - a != prod(shape) * DTYPES[dtype][1].itemsize or a < 0:
            raise self._fail(f"{what} of shape {shape} does not fill its {b - a} bytes")
        return Place(dtype, tuple(shape), base + a, base + b)

    def _check_places(self, places: Mapping[str, Place], base: int, size: int) -> None:
        end, last = base, ""
        for name, place in sorted(places.items(), key=lambda item: (item[1].start, item[1].stop)):
            if place.start < end:
                raise self._fail(f"tensors '{last}' and '{name}' overlap")
            if place.start > end:
                raise self._fail(f"{place.start - end} bytes before tensor '{name}' belong to none")
            end, last = place.stop, name
        if end > size:
            raise self._fail(
                f"tensor '{last}' ends at byte {end} of {size}; the file is truncated or "
                "damaged, fetch it again"
            )
        if end < size:
            raise self._fail(f"its last {size - end} bytes belong to no tensor")


def _map_file(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise CheckpointError(f"{path.name} is empty; fetch it again") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path.name}: {error.strerror}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    "".join(found).encode()  # a ValueError when a name holds half a character
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found

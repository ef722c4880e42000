"""Weights of a checkpoint become one file of packed tensors, and a layout that says where they lie.

A layout is plain data for the bundle's manifest:
`{"bytes": ..., "tensors": {name: {"offset": ..., "format": [...], "shape": [...]}}}`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from edgeserve._native import kernels
from edgeserve.backends.contract import Progress
from edgeserve.backends.cpu.compile import Placed
from edgeserve.backends.cpu.formats import BF16, F32, FLOAT_BYTES, SOURCES, PackedFormat
from edgeserve.checkpoint.view import Checkpoint, StoredTensor
from edgeserve.errors import BundleError, CheckpointError
from edgeserve.graph.values import Graph, WeightSpec

WEIGHTS = "weights.bin"
ALIGNMENT = 64
_CHECKED_VALUES = 1 << 22  # looked at together
_BF16_EXPONENT = np.uint16(0x7F80)

Bytes = npt.NDArray[np.uint8]


class _Entry(msgspec.Struct, frozen=True):
    offset: int
    format: tuple[int, ...]
    shape: tuple[int, ...]


class _Layout(msgspec.Struct, frozen=True):
    """What `pack_weights` returned, as a manifest gives it back: it may come from elsewhere."""

    bytes: int
    tensors: dict[str, _Entry]


def pack_weights(
    graph: Graph,
    checkpoint: Checkpoint,
    folder: Path,
    progress: Progress,
    *,
    dtype: str,
    threads: int,
) -> dict[str, Any]:
    """Write the packed file; returns its layout."""
    stored = [_find(checkpoint, spec) for spec in graph.weights]
    formats = [
        choose_format(tensor.format, dtype) if spec.matrix else F32
        for spec, tensor in zip(graph.weights, stored, strict=True)
    ]
    sizes = [_size(spec, format) for spec, format in zip(graph.weights, formats, strict=True)]
    total, done = sum(sizes), 0
    tensors: dict[str, Any] = {}
    with open(folder / WEIGHTS, "wb") as file:
        for spec, tensor, format in zip(graph.weights, stored, formats, strict=True):
            progress("pack", done, total)
            offset = _align(file)
            packed = _pack(checkpoint, spec, tensor, format, threads)
            file.write(packed.data)
            done += packed.nbytes
            tensors[spec.name] = {
                "offset": offset,
                "format": list(format),
                "shape": list(spec.shape),
            }
        end = _align(file)
    progress("pack", total, total)
    return {"bytes": end, "tensors": tensors}


def read_layout(graph: Graph, layout: dict[str, Any]) -> dict[str, Placed]:
    """The tensors that a graph needs, checked against the layout."""
    try:
        found = msgspec.convert(layout, _Layout)
    except msgspec.ValidationError as error:
        raise BundleError(f"the bundle's layout is damaged: {error}; build it again") from None
    tensors: dict[str, Placed] = {}
    for spec in graph.weights:
        entry = found.tensors.get(spec.name)
        if entry is None or entry.shape != spec.shape:
            raise BundleError(
                f"the bundle does not hold weight '{spec.name}' with shape {list(spec.shape)}; "
                "build it again"
            )
        tensors[spec.name] = _place(spec, entry, found.bytes)
    return tensors


def _place(spec: WeightSpec, entry: _Entry, total: int) -> Placed:
    """Native code reads by these numbers, so they are those of a packer or refused."""
    known = {F32, BF16, *(PackedFormat(*kernels.exact_format(s)) for s in SOURCES.values())}
    inside = entry.offset >= 0 and entry.offset % ALIGNMENT == 0
    if entry.format in known and inside:
        format = PackedFormat(*entry.format)
        if entry.offset + _size(spec, format) <= total and (spec.matrix or format == F32):
            return Placed(entry.offset, format, entry.shape)
    raise BundleError(f"the bundle's layout of weight '{spec.name}' is damaged; build it again")


def choose_format(stored: str, dtype: str) -> PackedFormat:
    """What a stored matrix is packed as: itself, exactly, where there is such a format."""
    if stored not in SOURCES:
        return F32 if dtype == "f32" else BF16
    if dtype == "bf16" and stored in ("f32", "f16"):
        return BF16
    return PackedFormat(*kernels.exact_format(SOURCES[stored]))


def _find(checkpoint: Checkpoint, spec: WeightSpec) -> StoredTensor:
    tensor = checkpoint.tensors().get(spec.name)
    if tensor is None:
        raise CheckpointError(
            f"the checkpoint has no tensor '{spec.name}', which its model needs with shape "
            f"{list(spec.shape)}"
        )
    if tensor.shape != spec.shape:
        raise CheckpointError(
            f"tensor '{spec.name}' has shape {list(tensor.shape)}, its model needs "
            f"{list(spec.shape)}"
        )
    return tensor


def _size(spec: WeightSpec, format: PackedFormat) -> int:
    if not spec.matrix:
        return 4 * int(np.prod(spec.shape))
    return kernels.packed_bytes(format, *spec.shape)


def _align(file: BinaryIO) -> int:
    """Fill up to the next aligned offset; returns it."""
    offset = file.tell()
    aligned = -(-offset // ALIGNMENT) * ALIGNMENT
    file.write(bytes(aligned - offset))
    return aligned


def _pack(
    checkpoint: Checkpoint,
    spec: WeightSpec,
    tensor: StoredTensor,
    format: PackedFormat,
    threads: int,
) -> Bytes:
    if not spec.matrix:
        values = np.ascontiguousarray(checkpoint.dequantise(spec.name), np.float32)
        _check_finite(spec.name, values, "f32")
        return values.reshape(-1).view(np.uint8)
    rows, columns = spec.shape
    source = tensor.format
    if source in SOURCES:
        stored = checkpoint.read(spec.name)
    else:
        source, stored = "f32", checkpoint.dequantise(spec.name)
    if source in FLOAT_BYTES:
        _check_finite(spec.name, stored, source)
    flat = np.ascontiguousarray(stored).reshape(rows, -1).view(np.uint8)
    if source in FLOAT_BYTES and flat.shape[1] != columns * FLOAT_BYTES[source]:
        raise CheckpointError(f"tensor '{spec.name}' is shorter than its shape says")
    return kernels.pack(SOURCES[source], flat, columns, format, threads=threads)


def _check_finite(name: str, values: np.ndarray, source: str) -> None:
    """One such weight makes every answer worthless. Blocks of rows bound the memory it takes."""
    step = max(1, _CHECKED_VALUES // max(1, values[:1].size))
    for start in range(0, len(values), step):
        rows = values[start : start + step]
        whole = (rows & _BF16_EXPONENT) != _BF16_EXPONENT if source == "bf16" else np.isfinite(rows)
        if not whole.all():
            raise CheckpointError(
                f"tensor '{name}' holds values that are not finite numbers; the checkpoint is "
                "damaged, fetch it again"
            )

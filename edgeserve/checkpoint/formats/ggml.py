"""The tensor types of GGUF: their names here, block sizes, and exact dequantisation.

Ten types keep their stored blocks through `Checkpoint.read` (`KEPT`): backends have kernels or
exact repackings for them. Every other type that the `gguf` package can dequantise is offered as
float32. Sizes come from the `gguf` package; a type it does not know is refused by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gguf.constants import GGMLQuantizationType

KEPT = frozenset({"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q6_k"})
PLAIN: dict[str, np.dtype[np.generic]] = {
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype("<u2"),  # numpy has no bfloat16: the upper half of a float32
    "f64": np.dtype("<f8"),
    "i8": np.dtype("<i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
}
_CHUNK_VALUES = 1 << 22  # dequantised at once: bounds the temporaries of gguf's table look-ups


def type_name(number: int) -> str | None:
    """The name of a GGUF tensor type, or None when it is not known or cannot be dequantised."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import _type_traits

    try:
        kind = GGMLQuantizationType(number)
    except ValueError:
        return None
    name: str = kind.name.lower()
    if kind not in GGML_QUANT_SIZES or not (name in PLAIN or kind in _type_traits):
        return None
    return name


def block_size(name: str) -> tuple[int, int]:
    """Values of a block and bytes of a block."""
    from gguf.constants import GGML_QUANT_SIZES

    values, size = GGML_QUANT_SIZES[_kind(name)]
    return int(values), int(size)


def dequantise(stored: np.ndarray, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """float32 values in `shape` of stored blocks [rows, bytes per row] or of a plain array."""
    if name == "f32":
        return stored.astype(np.float32, copy=False).reshape(shape)
    if name == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if name in PLAIN:
        return stored.astype(np.float32).reshape(shape)
    from gguf.quants import dequantize

    kind = _kind(name)
    result = np.empty((stored.shape[0], shape[-1]), np.float32)
    step = max(1, _CHUNK_VALUES // shape[-1])
    for start in range(0, stored.shape[0], step):
        result[start : start + step] = dequantize(stored[start : start + step], kind)
    return result.reshape(shape)


def _kind(name: str) -> GGMLQuantizationType:
    from gguf.constants import GGMLQuantizationType

    return GGMLQuantizationType[name.upper()]

"""Number formats: what a stored tensor is packed as, and which activations a packed matrix takes.

The layout itself stands in `_native/include/edgeserve/packed.h`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

# Changes whenever packed bytes change their meaning; part of every bundle's key.
LAYOUT = 1

# How the input of a linear layer is prepared: index into an instruction's three forms.
Form = Literal["f32", "int8", "bf16"]
FORMS: tuple[Form, ...] = ("f32", "int8", "bf16")


class Kind(IntEnum):
    """`Kind` of packed.h."""

    F32 = 0
    F16 = 1
    BF16 = 2
    INT = 3


class PackedFormat(NamedTuple):
    """`Format` of packed.h, field by field."""

    kind: int
    bits: int
    group: int = 0
    zero: int = 0
    minimum: int = 0
    wide_scale: int = 0


F32 = PackedFormat(Kind.F32, 32)
BF16 = PackedFormat(Kind.BF16, 16)

# `Source` of pack.h, by the name of a stored format. These are packed without changing a value;
# all others are dequantised.
SOURCES: dict[str, int] = {
    "f32": 0,
    "f16": 1,
    "bf16": 2,
    "q4_0": 3,
    "q4_1": 4,
    "q5_0": 5,
    "q5_1": 6,
    "q8_0": 7,
    "q4_k": 8,
    "q6_k": 9,
}

# Bytes of one row element of the float sources; the rows of others come as bytes.
FLOAT_BYTES: dict[str, int] = {"f32": 4, "f16": 2, "bf16": 2}


def activation_form(format: PackedFormat, activations: str) -> Form:
    """What a linear layer on this matrix reads. `activations` is int8 | bf16 | f32."""
    if activations == "f32":
        return "f32"
    if format.kind == Kind.INT:
        return "int8" if activations == "int8" else "f32"
    return "bf16" if format.kind == Kind.BF16 else "f32"

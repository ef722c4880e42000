"""A compiled network as data: the Python side of `_native/include/edgeserve/program.h`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from edgeserve.backends.cpu.formats import PackedFormat

NONE = -1  # no buffer, no weight
LOGITS = -2  # the caller's buffer


class Code(IntEnum):
    """`Code` of program.h, which documents the arguments."""

    EMBED = 0
    CONVERT = 1
    NORM = 2
    MATMUL = 3
    ANGLES = 4
    ROPE = 5
    KEEP = 6
    ATTEND = 7
    GATED = 8
    UNARY = 9
    BINARY = 10
    SELECT = 11


class Instruction(NamedTuple):
    """One step of all threads. `wait`: everything before must be finished by all of them."""

    code: Code
    wait: bool
    outputs: bool  # works on the rows of the logits, not of the tokens
    args: tuple[int, ...]
    numbers: tuple[float, ...]


class Matrix(NamedTuple):
    offset: int
    format: PackedFormat
    rows: int
    columns: int


class Vector(NamedTuple):
    offset: int
    width: int


class RopeTable(NamedTuple):
    frequencies: tuple[float, ...]
    factor: float
    interleaved: bool


class Buffer(NamedTuple):
    offset: int  # per row of the largest step
    row_bytes: int


class Cache(NamedTuple):
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    matrices: tuple[Matrix, ...]
    vectors: tuple[Vector, ...]
    ropes: tuple[RopeTable, ...]
    buffers: tuple[Buffer, ...]
    arena_row_bytes: int
    layers: tuple[Cache, ...]
    kv_f32: bool
    vocab: int
    instructions: tuple[Instruction, ...]

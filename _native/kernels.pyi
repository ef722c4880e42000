"""The kernels of the CPU backend one by one, on NumPy arrays: for the packer, tests and benches.

`format` is the six numbers of `edgeserve.backends.cpu.formats.PackedFormat`, `source` a number of
`formats.SOURCES`. `isa` names an instruction set of `isas()`; None is the best.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int32]

def isas() -> tuple[str, ...]:
    """Names of the instruction sets that this machine can run, best first."""

def packed_bytes(format: Sequence[int], rows: int, columns: int) -> int:
    """Bytes of a packed matrix."""

def exact_format(source: int) -> tuple[int, int, int, int, int, int]:
    """The format that holds a stored format without changing a value."""

def pack(
    source: int, rows: Bytes, columns: int, format: Sequence[int], *, threads: int = 1
) -> Bytes:
    """Stored rows [rows, bytes of a row] as packed tiles."""

class Matrix:
    """A packed matrix [rows, columns] in an array of its own."""

    rows: int
    columns: int
    def __init__(self, data: Bytes, format: Sequence[int], rows: int, columns: int) -> None: ...
    def gather(self, row: int, *, scale: float = 1.0, isa: str | None = None) -> Floats:
        """One row, dequantised."""

    def matmul(
        self, x: Floats, form: str, *, bias: Floats | None = None, isa: str | None = None
    ) -> Floats:
        """x @ matrix.T + bias. `form`: how x is prepared, int8 (int formats), bf16 (bf16 matrices)
        or f32 (any)."""

def quantise(x: Floats, *, isa: str | None = None) -> tuple[npt.NDArray[np.int8], Floats]:
    """x as int8 codes and the scale of each block of 32."""

def rms_norm(
    x: Floats, weight: Floats, *, eps: float, offset: float = 0.0, isa: str | None = None
) -> Floats: ...
def layer_norm(
    x: Floats, weight: Floats, bias: Floats | None, *, eps: float, isa: str | None = None
) -> Floats: ...
def unary(kind: int, x: Floats, *, number: float = 0.0, isa: str | None = None) -> Floats:
    """`kind`: silu 0, gelu 1, gelu_tanh 2, relu 3, relu2 4, times number 5, soft cap 6."""

def binary(kind: int, a: Floats, b: Floats, *, isa: str | None = None) -> Floats:
    """`kind`: add 0, multiply 1."""

def gated(kind: int, gate: Floats, up: Floats, *, isa: str | None = None) -> Floats:
    """unary(kind, gate) * up."""

def rope(x: Floats, angles: Floats, *, interleaved: bool = False, isa: str | None = None) -> Floats:
    """One head; `angles`: cosines, then sines, of the pairs that turn."""

def attend(
    q: Floats,
    keys: Floats,
    values: Floats,
    pages: Ids,
    *,
    first: int,
    scale: float,
    page_tokens: int = 16,
    kv_f32: bool = False,
    soft_cap: float = 0.0,
    window: int = 0,
    sinks: Floats | None = None,
    isa: str | None = None,
) -> Floats:
    """q [rows, heads, dim] at positions from `first` attends causally to one head of keys and
    values [positions, dim], which are put into `pages` first."""

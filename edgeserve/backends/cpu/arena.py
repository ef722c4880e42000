"""Buffers of a program and the order of its instructions: memory is used again as soon as its
value is dead, and threads wait for each other only where they must."""

from __future__ import annotations

from collections.abc import Iterable

from edgeserve.backends.cpu.formats import Form
from edgeserve.backends.cpu.program import Buffer

LINE = 64  # bytes
BLOCK = 32  # columns of a block of quantised activations


def row_bytes(form: Form, width: int) -> int:
    """Bytes of one row; rows are filled up to whole blocks."""
    blocks = -(-width // BLOCK)
    return blocks * {"f32": 4 * BLOCK, "bf16": 2 * BLOCK, "int8": LINE}[form]


class Arena:
    """Hands out buffers; each lies in a place, and places are used again."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.row_bytes = 0
        self._places: list[tuple[int, int]] = []  # offset, bytes
        self._place_of: list[int] = []  # by buffer
        self._free: list[int] = []

    def take(self, form: Form, width: int) -> int:
        """A buffer for rows of `width` values."""
        size = row_bytes(form, width)
        fitting = [place for place in self._free if self._places[place][1] >= size]
        if fitting:
            place = min(fitting, key=lambda place: self._places[place][1])
            self._free.remove(place)
        else:
            place = len(self._places)
            self._places.append((self.row_bytes, size))
            self.row_bytes += size
        self.buffers.append(Buffer(self._places[place][0], size))
        self._place_of.append(place)
        return len(self.buffers) - 1

    def give(self, buffer: int) -> None:
        self._free.append(self._place_of[buffer])

    def place(self, buffer: int) -> int:
        """The memory a buffer lies in: what two buffers may share."""
        return self._place_of[buffer] if buffer >= 0 else buffer


class Order:
    """Which places were read and written since all threads last waited for each other."""

    def __init__(self) -> None:
        self._read: set[object] = set()
        self._written: set[object] = set()

    def must_wait(self, reads: Iterable[object], writes: Iterable[object]) -> bool:
        """Whether an instruction must wait, and note what it does."""
        reads, writes = set(reads), set(writes)
        clash = bool(reads & self._written or writes & self._written or writes & self._read)
        if clash:
            self._read, self._written = set(), set()
        self._read |= reads
        self._written |= writes
        return clash

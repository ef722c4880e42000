"""A GGUF header is believed only as far as the file can bear it out."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeserve.checkpoint.gguf_file import GgufFile, read_architecture
from edgeserve.errors import CheckpointError
from tests.checkpoint.gguf_bytes import Gguf, Tensor, entry, small, text

ONE = bytes(128)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "m.gguf"
    path.write_bytes(data)
    return path


def test_reads_what_was_written(tmp_path: Path) -> None:
    path = write(tmp_path, small().bytes())
    file = GgufFile(path)
    assert file.metadata["a.number"] == 7
    assert file.metadata["a.flag"] is True
    assert file.metadata["a.list"] == [1, -2]
    assert file.metadata["a.words"] == ["x", "é", ""]
    assert file.metadata["a.real"] == 0.5
    assert (file.stored(file.tensors["one"]) == np.arange(64).reshape(2, 32)).all()
    blocks = file.stored(file.tensors["two"])
    assert blocks.shape == (3, 18)
    assert blocks.dtype == np.uint8
    assert blocks.tobytes() == bytes(range(54))
    assert not blocks.flags.writeable
    assert read_architecture(path) == "llama"


def test_agrees_with_the_gguf_package(tmp_path: Path) -> None:
    from gguf import GGUFReader

    path = write(tmp_path, small().bytes())
    reader, file = GGUFReader(path), GgufFile(path)
    for tensor in reader.tensors:
        ours = file.stored(file.tensors[tensor.name])
        assert ours.tobytes() == tensor.data.tobytes()
    assert {k for k in reader.fields if not k.startswith("GGUF.")} == set(file.metadata)


def bad(**changes: object) -> Gguf:
    file = small()
    for name, value in changes.items():
        setattr(file, name, value)
    return file


def dims(count: int, *sizes: int) -> bytes:
    """A file whose only tensor claims these dimensions."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<I", count)
    return head + b"".join(struct.pack("<Q", n) for n in sizes) + struct.pack("<IQ", 0, 0) + ONE


def array(kind: int, count: int, rest: bytes = b"") -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k")
    return head + struct.pack("<IIQ", 9, kind, count) + rest + ONE


HOSTILE = {
    "empty": b"",
    "short": b"GG",
    "magic": bad(magic=b"GGML").bytes(),
    "version 1": bad(version=struct.pack("<I", 1)).bytes(),
    "version 99": bad(version=struct.pack("<I", 99)).bytes(),
    "big-endian": bad(version=struct.pack(">I", 3)).bytes(),
    "tensor count 2^63": bad(counts=(1 << 63, 6)).bytes(),
    "metadata count 2^63": bad(counts=(2, 1 << 63)).bytes(),
    "metadata count 2^20": bad(counts=(2, 1 << 20)).bytes(),
    "no dimensions": dims(0),
    "five dimensions": dims(5, 1, 1, 1, 1, 1),
    "2^32 - 1 dimensions": dims(0xFFFFFFFF),
    "overflowing shape": dims(3, 4194305, 4194305, 211106198978564),
    "zero extent": dims(2, 0, 4),
    "shape past the file": dims(1, 1 << 40),
    "string length 2^60": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60) + ONE,
    "array of 2^60": array(0, 1 << 60),
    "array of 2^23 strings": array(8, 1 << 23),
    "array of an unknown type": array(99, 4),
    "arrays in arrays": array(9, 1, struct.pack("<IQ", 9, 1) * 50),
    "unknown type": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + b"\x63\0\0\0" + ONE,
    "alignment 0": small().add("general.alignment", "u32", 0).bytes(),
    "alignment 3": small().add("general.alignment", "u32", 3).bytes(),
    "alignment a string": small().add("general.alignment", "str", "x").bytes(),
    "key twice": small().add("a.number", "u32", 8).bytes(),
    "tensor twice": bad(tensors=[Tensor("t", (32,), 0, ONE)] * 2).bytes(),
    "offset past the end": bad(tensors=[Tensor("t", (32,), 0, ONE, offset=1 << 62)]).bytes(),
    "offset not aligned": bad(tensors=[Tensor("t", (8,), 0, ONE, offset=4)]).bytes(),
    "overlap": bad(
        tensors=[Tensor("t", (32,), 0, ONE, offset=0), Tensor("u", (32,), 0, ONE, offset=32)]
    ).bytes(),
    "unknown tensor type": bad(tensors=[Tensor("t", (32,), 4, ONE)]).bytes(),
    "half a block": bad(tensors=[Tensor("t", (2, 33), 2, ONE)]).bytes(),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_header_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    with pytest.raises(CheckpointError):  # loads gguf's tables before memory is measured
        GgufFile(path)
    tracemalloc.start()
    start = time.thread_time()
    with pytest.raises(CheckpointError) as caught:
        GgufFile(path)
    assert time.thread_time() - start < 0.5
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert "m.gguf" in caught.value.message
    assert "\n" not in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot read"):
        GgufFile(tmp_path / "none.gguf")


def test_every_truncation_is_found(tmp_path: Path) -> None:
    whole = small().bytes()
    used = len(whole) - (-54 % 32)  # padding after the last tensor may be missing
    for size in [*range(0, used, 17), used - 1]:
        with pytest.raises(CheckpointError):
            GgufFile(write(tmp_path, whole[:size]))
    GgufFile(write(tmp_path, whole[:used]))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=8))
def test_any_damage_is_an_error_or_another_file(
    tmp_path: Path, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(small().bytes())
    for at, value in changes:
        data[at % len(data)] = value
    try:
        file = GgufFile(write(tmp_path, bytes(data)))
    except CheckpointError:
        return
    for tensor in file.tensors.values():
        file.stored(tensor).sum()


def test_broken_utf8_in_a_description_does_no_harm(tmp_path: Path) -> None:
    file = small()
    file.metadata.append(text("general.name") + struct.pack("<I", 8) + text(b"\xff\xfe"))
    assert GgufFile(write(tmp_path, file.bytes())).metadata["general.name"] == "\ufffd\ufffd"


def test_alignment_of_the_file_is_used(tmp_path: Path) -> None:
    file = bad(alignment=64)
    file.metadata.append(entry("general.alignment", "u32", 64))
    read = GgufFile(write(tmp_path, file.bytes()))
    assert (read.stored(read.tensors["one"])[1] == np.arange(32, 64)).all()

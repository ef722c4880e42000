"""A Hugging Face folder: JSON files and safetensors, single or in shards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from edgeserve.checkpoint.digest import DigestOne, digest_file, digest_files
from edgeserve.checkpoint.formats import ggml
from edgeserve.checkpoint.json_file import read_object, read_text
from edgeserve.checkpoint.safetensors_file import DTYPES, SafetensorsFile
from edgeserve.checkpoint.view import StoredTensor
from edgeserve.errors import CheckpointError

_INDEX = "model.safetensors.index.json"
_DIGESTED = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt", "chat_templates/*.jinja")
_AS_F32 = frozenset({"f64"})  # offered as float32
_FLOATS = frozenset({"f64", "f32", "f16", "bf16"})


class FolderCheckpoint:
    """`Checkpoint` over a Hugging Face folder. Files are opened when they are first needed."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self.identity = identity
        self.config: Mapping[str, Any] = read_object(path / "config.json")
        if not isinstance(self.config.get("model_type"), str):
            raise CheckpointError(f"{path.name}/config.json does not say its model_type")
        self.model_type: str = self.config["model_type"]
        _check_quantisation(self.config)
        self.generation_config: Mapping[str, Any] = read_object(path / "generation_config.json")
        self.tokenizer_config: Mapping[str, Any] = with_templates(path)

    def tokenizer_json(self) -> str:
        path = self.path / "tokenizer.json"
        if not path.is_file():
            raise CheckpointError(
                f"{self.path.name} has no tokenizer.json; save the model's fast tokenizer there "
                "(AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER))"
            )
        return read_text(path)

    def chat_template(self) -> str | None:
        stored = self.tokenizer_config.get("chat_template")
        if isinstance(stored, list):
            stored = {e["name"]: e["template"] for e in stored}.get("default")
        return stored if isinstance(stored, str) else None

    def tensors(self) -> Mapping[str, StoredTensor]:
        return self._described

    def read(self, name: str) -> np.ndarray:
        stored = self._find(name).stored(name)
        return stored.astype(np.float32) if self._kind(name) in _AS_F32 else stored

    def dequantise(self, name: str) -> np.ndarray:
        stored, kind = self._find(name).stored(name), self._kind(name)
        if kind not in _FLOATS:  # integers would need scales that a config declares
            raise CheckpointError(
                f"tensor '{name}' has the format {kind}, which is not supported yet; use a bf16, "
                "f16 or f32 copy of the model, or a GGUF"
            )
        return ggml.dequantise(stored, kind, stored.shape)

    def digest(self, digest_one: DigestOne = digest_file) -> str:
        named = [(path.relative_to(self.path).as_posix(), path) for path in self.files()]
        return digest_files(named, digest_one)

    def files(self) -> list[Path]:
        """What `digest` reads: every file that can change what is served."""
        return sorted({path for kind in _DIGESTED for path in self.path.glob(kind)})

    @cached_property
    def _shards(self) -> Mapping[str, SafetensorsFile]:
        """The file of each tensor."""
        index = read_object(self.path / _INDEX)
        if index:
            return _indexed(self.path, index)
        single = self.path / "model.safetensors"
        names = [single] if single.is_file() else sorted(self.path.glob("*.safetensors"))
        shards: dict[str, SafetensorsFile] = {}
        for path in names:
            file = SafetensorsFile(path)
            for name in file.tensors:
                if name in shards:
                    raise CheckpointError(
                        f"tensor '{name}' is in {shards[name].path.name} and in {path.name}"
                    )
                shards[name] = file
        if not shards:
            raise CheckpointError(
                f"{self.path.name} has no safetensors; convert the model (save_pretrained) or "
                "use a GGUF, since pickled weights are never opened"
            )
        return shards

    @cached_property
    def _described(self) -> dict[str, StoredTensor]:
        return {
            name: StoredTensor(
                name,
                file.tensors[name].shape,
                "f32" if self._kind(name) in _AS_F32 else self._kind(name),
            )
            for name, file in self._shards.items()
        }

    def _kind(self, name: str) -> str:
        return DTYPES[self._find(name).tensors[name].dtype][0]

    def _find(self, name: str) -> SafetensorsFile:
        if name not in self._shards:
            raise CheckpointError(f"{self.path.name} has no tensor '{name}'")
        return self._shards[name]


def _check_quantisation(config: Mapping[str, Any]) -> None:
    """Its weights would be read as numbers that they are not."""
    declared = config.get("quantization_config")
    if declared:
        method = declared.get("quant_method") if isinstance(declared, dict) else None
        raise CheckpointError(
            f"the checkpoint is quantised with {str(method or 'an unknown method')[:40]!r}, which "
            "is not supported yet; use a bf16, f16 or f32 copy of the model, or a GGUF"
        )


def _indexed(folder: Path, index: Mapping[str, Any]) -> dict[str, SafetensorsFile]:
    places = index.get("weight_map")
    if not isinstance(places, dict):
        raise CheckpointError(f"{_INDEX} has no weight_map")
    files: dict[str, SafetensorsFile] = {}
    for name, shard in places.items():
        if not isinstance(shard, str) or Path(shard).name != shard or "\\" in shard:
            raise CheckpointError(f"{_INDEX} places tensor '{name[:80]}' outside its folder")
        if shard not in files:
            files[shard] = SafetensorsFile(folder / shard)
        if name not in files[shard].tensors:
            raise CheckpointError(f"tensor '{name[:80]}' is not in {shard}, where {_INDEX} has it")
    return {name: files[shard] for name, shard in places.items()}


def with_templates(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json with the chat templates that lie beside it, which win over its own."""
    config = read_object(folder / "tokenizer_config.json")
    legacy = read_object(folder / "chat_template.json").get("chat_template")
    if isinstance(legacy, str):
        config.setdefault("chat_template", legacy)
    stored = config.get("chat_template")
    named: dict[str, str] = {}
    if isinstance(stored, str):
        named["default"] = stored
    elif stored is not None:
        named = _named_templates(stored)
    single = folder / "chat_template.jinja"
    if single.is_file():
        named["default"] = read_text(single)
    for path in sorted(folder.glob("chat_templates/*.jinja")):
        named[path.stem] = read_text(path)
    if list(named) == ["default"]:
        config["chat_template"] = named["default"]
    elif named:
        config["chat_template"] = [{"name": k, "template": v} for k, v in named.items()]
    return config


def _named_templates(stored: Any) -> dict[str, str]:
    entries = stored if isinstance(stored, list) else [stored]
    found: dict[str, str] = {}
    for entry in entries:
        match entry:
            case {"name": str(name), "template": str(template)}:
                found[name] = template
            case _:
                raise CheckpointError(
                    "tokenizer_config.json: 'chat_template' must be a text, or a list of objects "
                    f"with name and template; it holds {str(entry)[:80]!r}"
                )
    return found

"""A bundle's text component seen as a checkpoint: all but the weights' values.

Families build spec, tokenizer, template and graph from it, so a bundle is served without the
checkpoint that it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgeserve.bundle.manifest import COMPONENTS, TEXT, Manifest, read_manifest
from edgeserve.checkpoint.digest import DigestOne, digest_file
from edgeserve.checkpoint.json_file import read_object, read_text
from edgeserve.checkpoint.safetensors import with_templates
from edgeserve.checkpoint.view import Checkpoint, StoredTensor
from edgeserve.errors import BundleError

_TENSORS = "tensors.json"
_Tensors = dict[str, tuple[tuple[int, ...], str]]  # name: shape and format


class BundleCheckpoint:
    """`Checkpoint` over a bundle folder. `read` and `dequantise` are refused."""

    def __init__(self, path: Path, manifest: Manifest | None = None) -> None:
        self.path = path
        self.manifest = manifest or read_manifest(path)
        self.identity = self.manifest.identity
        self.model_type = self.manifest.model_type
        self._folder = path / COMPONENTS / TEXT

    @cached_property
    def config(self) -> Mapping[str, Any]:
        return read_object(self._folder / "config.json")

    @cached_property
    def generation_config(self) -> Mapping[str, Any]:
        return read_object(self._folder / "generation_config.json")

    @cached_property
    def tokenizer_config(self) -> Mapping[str, Any]:
        return with_templates(self._folder)

    def tokenizer_json(self) -> str:
        return read_text(self._folder / "tokenizer.json")

    def chat_template(self) -> str | None:
        path = self._folder / "chat_template.jinja"
        return read_text(path) if path.is_file() else None

    @cached_property
    def _described(self) -> dict[str, StoredTensor]:
        try:
            stored = msgspec.convert(read_object(self._folder / _TENSORS), _Tensors)
        except msgspec.ValidationError as error:
            raise BundleError(
                f"bundle '{self.path.name}' has a damaged {_TENSORS}: {error}; build it again"
            ) from None
        return {name: StoredTensor(name, shape, kind) for name, (shape, kind) in stored.items()}

    def tensors(self) -> Mapping[str, StoredTensor]:
        return self._described

    def read(self, name: str) -> np.ndarray:
        raise BundleError(f"'{self.path.name}' is a bundle: tensor '{name}' is packed inside")

    def dequantise(self, name: str) -> np.ndarray:
        return self.read(name)

    def files(self) -> list[Path]:
        return [
            self.path / COMPONENTS / part / name
            for part, component in self.manifest.components.items()
            for name in component.files
        ]

    def digest(self, digest_one: DigestOne = digest_file) -> str:  # noqa: ARG002
        """Of the checkpoint that the bundle was made from."""
        return self.manifest.checkpoint_digest


def write_view(checkpoint: Checkpoint, folder: Path) -> None:
    """The files that a `BundleCheckpoint` reads."""
    tensors = {t.name: [t.shape, t.format] for t in checkpoint.tensors().values()}
    documents = {
        "config.json": dict(checkpoint.config),
        "generation_config.json": dict(checkpoint.generation_config),
        "tokenizer_config.json": dict(checkpoint.tokenizer_config),
        _TENSORS: tensors,
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document, ensure_ascii=False, indent=1), "utf-8")
    (folder / "tokenizer.json").write_text(checkpoint.tokenizer_json(), "utf-8")
    template = checkpoint.chat_template()
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, "utf-8")

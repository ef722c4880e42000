"""A GGUF file seen as a Hugging Face checkpoint: names, shapes, row order and config of its family.

Quantised blocks stay as stored (formats/ggml.py says which). llama.cpp permutes the rows of q and
k projections of some architectures; a block never spans rows, so undoing it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeserve.checkpoint import gguf_config
from edgeserve.checkpoint.digest import DigestOne, digest_file, digest_files
from edgeserve.checkpoint.formats import ggml
from edgeserve.checkpoint.gguf_file import GgufFile, GgufTensor
from edgeserve.checkpoint.view import StoredTensor
from edgeserve.errors import CheckpointError

if TYPE_CHECKING:
    from edgeserve.family.contract import GgufMapping

_ROPE = ("rope_freqs", "rope_factors_long", "rope_factors_short")
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf$")
_PARTS_LIMIT = 1000


class GgufCheckpoint:
    """`Checkpoint` over one GGUF file, or over the parts of a split one. The file is opened when
    something beside its digest is first needed: a cached bundle never needs it."""

    def __init__(self, path: Path, mapping: GgufMapping, identity: str) -> None:
        self.path = path
        self.identity = identity
        self.model_type = mapping.model_type
        self._mapping = mapping

    @cached_property
    def _files(self) -> list[GgufFile]:
        return [GgufFile(path) for path in self.files()]

    @cached_property
    def _stored(self) -> Mapping[str, tuple[GgufFile, GgufTensor]]:
        return {t.name: (file, t) for file in self._files for t in file.tensors.values()}

    @cached_property
    def _tensors(self) -> Mapping[str, tuple[GgufFile, GgufTensor]]:
        return _rename(self._stored, self._mapping)

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return self._files[0].metadata

    @cached_property
    def config(self) -> Mapping[str, Any]:
        rope = {n: self._stored[f"{n}.weight"] for n in _ROPE if f"{n}.weight" in self._stored}
        factors = {name: _values(place).reshape(-1) for name, place in rope.items()}
        config = gguf_config.model_config(self._metadata, self._mapping, factors)
        _complete(config, self._tensors)
        return config

    @cached_property
    def generation_config(self) -> Mapping[str, Any]:
        return gguf_config.generation_config(self._metadata)

    @cached_property
    def tokenizer_config(self) -> Mapping[str, Any]:
        return gguf_config.tokenizer_config(self._metadata)

    @cached_property
    def _heads(self) -> Mapping[str, int]:
        return _permuted_heads(self._mapping, self.config, self._tensors)

    def tokenizer_json(self) -> str:
        from edgeserve.text.gguf_tokenizer import convert

        return convert(self._metadata)

    def chat_template(self) -> str | None:
        return gguf_config.chat_templates(self._metadata).get("default")

    @cached_property
    def _described(self) -> dict[str, StoredTensor]:
        return {
            name: StoredTensor(name, t.shape, t.type if t.type in ggml.KEPT else "f32")
            for name, (_, t) in self._tensors.items()
        }

    def tensors(self) -> Mapping[str, StoredTensor]:
        return self._described

    def read(self, name: str) -> np.ndarray:
        file, tensor = self._find(name)
        if tensor.type not in ggml.KEPT:
            return self.dequantise(name)
        return self._in_order(name, file.stored(tensor))

    def dequantise(self, name: str) -> np.ndarray:
        return self._in_order(name, _values(self._find(name)))

    def digest(self, digest_one: DigestOne = digest_file) -> str:
        return digest_files([(path.name, path) for path in self.files()], digest_one)

    def files(self) -> list[Path]:
        """What `digest` reads: the file, or all parts of a split one."""
        return split_files(self.path)

    def _find(self, name: str) -> tuple[GgufFile, GgufTensor]:
        if name not in self._tensors:
            raise CheckpointError(f"{self.path.name} has no tensor '{name}'")
        return self._tensors[name]

    def _in_order(self, name: str, rows: np.ndarray) -> np.ndarray:
        heads = self._heads.get(name)
        return rows if heads is None else rows[unpermuted(len(rows), heads)]


def split_files(path: Path) -> list[Path]:
    """All parts of a file named NAME-00001-of-0000N.gguf, or the file alone."""
    match = _PART.match(path.name)
    if match is None:
        return [path]
    count = min(int(match[3]), _PARTS_LIMIT)
    if int(match[2]) != 1:
        raise CheckpointError(
            f"{path.name} is one of {count} parts; name the first, {match[1]}-00001-of-{count:05}"
            ".gguf, with the others beside it"
        )
    return [path.with_name(f"{match[1]}-{i:05}-of-{count:05}.gguf") for i in range(1, count + 1)]


def unpermuted(rows: int, heads: int) -> np.ndarray:
    """Row indices that undo llama.cpp's order of rotary pairs: [pair, half] back to [half, pair]
    within each head."""
    half = rows // heads // 2
    indices: np.ndarray = np.arange(rows).reshape(heads, half, 2).swapaxes(1, 2).reshape(-1)
    return indices


def _rename(
    stored: Mapping[str, tuple[GgufFile, GgufTensor]], mapping: GgufMapping
) -> dict[str, tuple[GgufFile, GgufTensor]]:
    patterns = {
        re.compile(re.escape(source).replace(r"\{i\}", r"(\d+)") + "$"): target
        for target, source in mapping.tensors.items()
    }
    renamed = {}
    for name, place in stored.items():
        for pattern, target in patterns.items():
            match = pattern.match(name)
            if match is not None:
                layer = match[1] if match.groups() else ""
                renamed[target.replace("{i}", layer)] = place
                break
    return renamed


def _values(place: tuple[GgufFile, GgufTensor]) -> np.ndarray:
    file, tensor = place
    return ggml.dequantise(file.stored(tensor), tensor.type, tensor.shape)


def _complete(config: dict[str, Any], tensors: Mapping[str, tuple[GgufFile, GgufTensor]]) -> None:
    """What a config says and a GGUF shows by its tensors."""
    embeddings = tensors.get("model.embed_tokens.weight")
    if embeddings is not None:
        config["vocab_size"] = embeddings[1].shape[0]
        config["tie_word_embeddings"] = "lm_head.weight" not in tensors


def _permuted_heads(
    mapping: GgufMapping,
    config: Mapping[str, Any],
    tensors: Mapping[str, tuple[GgufFile, GgufTensor]],
) -> dict[str, int]:
    """Head count of each tensor whose rows must be put back in order."""
    found = {}
    for target, key in mapping.permuted.items():
        pattern = re.compile(re.escape(target).replace(r"\{i\}", r"\d+") + "$")
        for name, (_, tensor) in tensors.items():
            if not pattern.match(name):
                continue
            heads = config.get(key)
            if not isinstance(heads, int) or heads <= 0 or tensor.shape[0] % (2 * heads):
                raise CheckpointError(
                    f"tensor '{name}' has {tensor.shape[0]} rows for {key} = {heads!r}"
                )
            found[name] = heads
    return found

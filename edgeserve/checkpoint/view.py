"""One read-only view of a model's files, whatever they were stored as.

Tensor names are Hugging Face's; a GGUF is renamed through its family's mapping. A tensor is
described without reading it; `read` gives its stored blocks, `dequantise` its float32 values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgeserve.checkpoint.digest import DigestOne, digest_file


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as its file holds it."""

    name: str  # Hugging Face name
    shape: tuple[int, ...]  # logical, row-major, as in PyTorch
    format: str  # f32 | bf16 | f16 | q4_0 | q4_1 | q5_0 | q5_1 | q8_0 | q4_k | q6_k | ...


class Checkpoint(Protocol):
    """What families, packers and the reference interpreter read."""

    identity: str  # what the user sees: hub id, file name, package
    path: Path  # folder or file
    model_type: str

    @property
    def config(self) -> Mapping[str, Any]:
        """config.json, or its equivalent made from GGUF metadata."""
        ...

    @property
    def generation_config(self) -> Mapping[str, Any]:
        """generation_config.json; {} when absent."""
        ...

    @property
    def tokenizer_config(self) -> Mapping[str, Any]:
        """tokenizer_config.json; {} when absent. `chat_template` is a string, or a list of
        {"name", "template"} when there are several, wherever the files keep them."""
        ...

    def tokenizer_json(self) -> str:
        """The text of tokenizer.json (converted exactly when the file is a GGUF)."""
        ...

    def chat_template(self) -> str | None:
        """The Jinja source of the default chat template."""
        ...

    def tensors(self) -> Mapping[str, StoredTensor]: ...

    def read(self, name: str) -> np.ndarray:
        """Stored bytes: [rows, bytes per row] uint8 for quantised formats; uint16 for bf16; else
        the plain dtype in the logical shape. A read-only view of a mapped file where possible."""
        ...

    def dequantise(self, name: str) -> np.ndarray:
        """float32 values in the logical shape; exact for every format."""
        ...

    def files(self) -> list[Path]:
        """The files that `digest` reads, on this machine."""
        ...

    def digest(self, digest_one: DigestOne = digest_file) -> str:
        """sha256 over all bytes of all files that matter, in name order. `digest_one` may
        remember the digests of files."""
        ...

"""Typed reading of config.json for families: a wrong or missing key is one clear sentence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.errors import CheckpointError
from edgeserve.graph.ops import ActivationKind

ACTIVATIONS: dict[str, ActivationKind] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}
# A config is somebody else's file: no number in it may make us allocate without end.
LARGEST = 2**31 - 1
MOST_LAYERS = 4096
LARGEST_HEAD = 65536


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The config of one checkpoint. A key that is absent or null takes the default given."""

    checkpoint: Checkpoint

    @property
    def values(self) -> Mapping[str, Any]:
        return self.checkpoint.config

    def integer(
        self, key: str, default: int | None = None, minimum: int = 1, maximum: int = LARGEST
    ) -> int:
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(key, "a whole number", value)
        if not minimum <= value <= maximum:
            raise self._wrong(key, f"from {minimum} to {maximum}", value)
        return value

    def layers(self) -> int:
        return self.integer("num_hidden_layers", maximum=MOST_LAYERS)

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(key, "a number", value)
        if not abs(value) <= sys.float_info.max:
            raise self._wrong(key, "a number", value)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def activation(self, key: str = "hidden_act", default: str = "silu") -> ActivationKind:
        value = self.values.get(key) or default
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise self._wrong(key, f"one of {', '.join(ACTIVATIONS)}", value)
        return ACTIVATIONS[value]

    def has_tensor(self, name: str) -> bool:
        return name in self.checkpoint.tensors()

    def head_dim(self, default: int | None = None) -> int:
        """`head_dim`, else the hidden size shared among the heads."""
        heads, hidden = self.integer("num_attention_heads"), self.integer("hidden_size")
        return self.integer("head_dim", default or max(hidden // heads, 1), maximum=LARGEST_HEAD)

    def vocab(self, table: str = "model.embed_tokens.weight") -> int:
        """`vocab_size`, else the rows of the embedding table (many a GGUF has no such key)."""
        if self.values.get("vocab_size") is None and self.has_tensor(table):
            return self.checkpoint.tensors()[table].shape[0]
        return self.integer("vocab_size")

    def tied(self, head: str = "lm_head.weight") -> bool:
        """Whether the output head is the embedding table."""
        return self.flag("tie_word_embeddings", not self.has_tensor(head))

    def layer_windows(self, layers: int, window: int | None, first: int = 0) -> list[int | None]:
        """The sliding window of each layer: by `layer_types` where given, else from layer `first`
        on."""
        kinds = self.values.get("layer_types")
        if kinds is None:
            return [window if layer >= first else None for layer in range(layers)]
        if not isinstance(kinds, list | tuple) or len(kinds) != layers:
            raise self._wrong("layer_types", f"a list of {layers} names", kinds)
        known = {"full_attention": None, "sliding_attention": window}
        for kind in kinds:
            if not isinstance(kind, str) or kind not in known:
                raise self._wrong("layer_types", f"a list of {' and '.join(known)}", kind)
        return [known[kind] for kind in kinds]

    def _wrong(self, key: str, expected: str, value: object) -> CheckpointError:
        found = "it is missing" if value is None else f"it is {str(value)[:80]!r}"
        return CheckpointError(
            f"config.json of '{self.checkpoint.identity}': '{key}' must be {expected}; {found}"
        )

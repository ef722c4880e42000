"""The model object of OpenAI's list, with what a client may want to know of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeserve.model_info import ModelInfo

STREAMING = "incremental"  # pieces are sent while the model still generates


def model_card(info: ModelInfo, name: str, *, names: Sequence[str], created: int) -> dict[str, Any]:
    """`names` are all names of this model, its own first."""
    card: dict[str, Any] = {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "edgeserve",
        "max_model_len": info.limits.max_model_len,
        "root": info.identity,
        "parent": None if name == names[0] else names[0],
        "aliases": [other for other in names if other != name],
        "trtmc": {"streaming": STREAMING, "protocol_version": 2},
        "edgeserve": {
            "family": info.family,
            "backend": info.backend,
            "dtype": info.dtype,
            "max_input_len": info.limits.max_input_len,
            "input_modalities": ["text"],
            "output_modalities": ["text"],
        },
    }
    return card

"""What a backend supplies: pack weights into a bundle component, and load it as a `Forward`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from edgeserve._native.forward import Forward
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions
from edgeserve.graph.values import Graph

# progress(stage, done, total) in bytes; called often, must be cheap
Progress = Callable[[str, int, int], None]


class Backend(Protocol):
    name: str

    def key(self, options: EngineOptions) -> dict[str, Any]:
        """Everything beside checkpoint and family that the packed bytes depend on (formats,
        layout version, instruction-set layout). Part of the bundle's key; JSON-able, sorted."""
        ...

    def pack(
        self,
        graph: Graph,
        checkpoint: Checkpoint,
        options: EngineOptions,
        folder: Path,
        progress: Progress,
    ) -> dict[str, Any]:
        """Write the component's files into `folder`; returns the manifest entry of its layout.
        A missing tensor or a wrong shape is a CheckpointError that names it and what it expects."""
        ...

    def load(
        self,
        graph: Graph,
        folder: Path,
        layout: dict[str, Any],
        options: EngineOptions,
        *,
        pages: int,
        page_tokens: int,
    ) -> Forward:
        """Load a packed component, with storage for `pages` pages of keys and values."""
        ...

    def page_bytes(self, graph: Graph, options: EngineOptions, page_tokens: int) -> int:
        """Bytes of one page over all layers, to size the pool."""
        ...

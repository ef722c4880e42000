"""A backend and a family that are as small as bundles allow, and a checkpoint for them.

As a program: `python -m tests.bundle.parts CHECKPOINT CACHE [SECONDS]` builds the bundle, sleeping
SECONDS in the middle of the packing, prints its folder and waits for a line while it is served.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from edgeserve.backends.contract import Progress
from edgeserve.bundle.bundle import Bundle
from edgeserve.bundle.ensure import ensure
from edgeserve.checkpoint.open import open_checkpoint
from edgeserve.checkpoint.resolve import resolve_path
from edgeserve.checkpoint.view import Checkpoint
from edgeserve.config import EngineOptions
from edgeserve.family.contract import CONTRACT, GraphOptions, ModelSpec
from edgeserve.graph.values import Graph

VOCAB = {"a": 0, "b": 1, "</s>": 2}
WEIGHTS = np.arange(1000, dtype=np.float32)


def write_checkpoint(folder: Path, weights: np.ndarray = WEIGHTS) -> Path:
    folder.mkdir(parents=True)
    model = {"type": "BPE", "vocab": VOCAB, "merges": []}
    added = {"id": 2, "content": "</s>", "special": True}
    added |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    documents: dict[str, dict[str, Any]] = {
        "config.json": {"model_type": "stub", "eos_token_id": 2, "context": 32},
        "generation_config.json": {"temperature": 0.5},
        "tokenizer_config.json": {"eos_token": "</s>", "chat_template": "{{ messages }}é"},
        "tokenizer.json": {"version": "1.0", "model": model, "added_tokens": [added]},
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), "utf-8")
    save_file({"w": weights}, folder / "model.safetensors")
    return folder


@dataclass
class StubBackend:
    """Packs by copying; counts how often. `fault` is raised in the middle of packing."""

    name: str = "stub"
    layout: int = 1
    packs: int = 0
    sleep_s: float = 0.0
    fault: BaseException | None = None

    def key(self, options: EngineOptions) -> dict[str, Any]:
        return {"layout": self.layout, "dtype": options.dtype}

    def pack(
        self,
        graph: Graph,
        checkpoint: Checkpoint,
        options: EngineOptions,
        folder: Path,
        progress: Progress,
    ) -> dict[str, Any]:
        del graph, options
        self.packs += 1
        (folder / "weights.bin").write_bytes(checkpoint.read("w").tobytes())
        progress("pack", 1, 2)
        time.sleep(self.sleep_s)
        if self.fault is not None:
            raise self.fault
        return {"weights": [0, 4000]}

    def load(self, *args: Any, **settings: Any) -> Any:
        raise NotImplementedError

    def page_bytes(self, graph: Graph, options: EngineOptions, page_tokens: int) -> int:
        raise NotImplementedError


@dataclass
class StubFamily:
    name: str = "stub"
    contract: int = CONTRACT
    version: str = "1"
    gguf: dict[str, Any] = field(default_factory=dict)

    def spec(self, checkpoint: Checkpoint) -> ModelSpec:
        context = checkpoint.config["context"]
        return ModelSpec(layers=1, vocab=len(VOCAB), context=context, eos_ids=(2,))

    def graph(self, checkpoint: Checkpoint, options: GraphOptions) -> Any:
        del options
        return tuple(checkpoint.tensors())

    def tokenizer(self, checkpoint: Checkpoint) -> Any: ...

    def template(self, checkpoint: Checkpoint) -> Any: ...

    def sampler(self, checkpoint: Checkpoint) -> Any: ...


def options(cache: Path, **settings: Any) -> EngineOptions:
    return EngineOptions(checkpoint="", cache_dir=cache, **settings)


def build(
    checkpoint: Path,
    cache: Path,
    backend: StubBackend | None = None,
    family: StubFamily | None = None,
    progress: Progress = lambda *_: None,
    **settings: Any,
) -> Bundle:
    """What a worker does: open the checkpoint, ensure its bundle."""
    view = open_checkpoint(resolve_path(checkpoint))
    return ensure(
        view, family or StubFamily(), backend or StubBackend(), options(cache, **settings), progress
    )


def main() -> None:
    checkpoint, cache, *sleep = sys.argv[1:]
    backend = StubBackend(sleep_s=float(sleep[0]) if sleep else 0.0)

    def show(stage: str, done: int, total: int) -> None:
        print(stage, done, total, flush=True)

    bundle = build(Path(checkpoint), Path(cache), backend, progress=show)
    print(f"packs {backend.packs}", bundle.path, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()

"""What a model family supplies. A family never touches a backend, a device or the network.

A family object is found through the entry-point group `edgeserve.families` (name: the
`model_type` of config.json) and `edgeserve.gguf` (name: the `general.architecture` of a GGUF).
Everything here is data or a small pure function of the checkpoint. `CONTRACT` changes when this
file changes in a way that breaks plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.graph.values import Graph
from edgeserve.sampling import SamplerDefaults

if TYPE_CHECKING:
    import numpy as np

    from edgeserve.text.template import ChatTemplate
    from edgeserve.text.tokenizer import Tokenizer

CONTRACT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """The numbers of one model that core, front and capabilities need."""

    layers: int
    vocab: int  # rows of logits; may exceed the tokenizer's ids
    context: int  # positions the model was made for (after RoPE scaling)
    eos_ids: tuple[int, ...]
    tasks: tuple[str, ...] = ("generate",)
    notes: tuple[str, ...] = ()  # e.g. "text part of a multimodal checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A declared request option of a family: only supplied values are forwarded."""

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: bool | int | float | str | None = None
    minimum: float | None = None
    maximum: float | None = None
    help: str = ""


# The slow, documented exception to "steps are data": called by the engine thread once per sampled
# token with all token ids of the choice so far, how many of them are the prompt, and the raw logits
# [vocab], which it may change in place. It keeps no state: a choice may be preempted and resumed.
# See docs/family.md.
LogitsHook = Callable[[Sequence[int], int, "np.ndarray"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Sampler defaults, declared options and processing steps of a family."""

    defaults: SamplerDefaults = field(default_factory=SamplerDefaults)
    options: tuple[Option, ...] = ()
    suppress_ids: tuple[int, ...] = ()  # never sampled
    stop_ids: tuple[int, ...] = ()  # beside ModelSpec.eos_ids
    hook: LogitsHook | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """What a graph may depend on at load (length-dependent RoPE)."""

    max_model_len: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufMapping:
    """How a GGUF of one architecture becomes the Hugging Face view of the same model."""

    model_type: str
    # config.json key -> GGUF metadata key, "{arch}" replaced by the architecture's name. Metadata
    # that the file lacks gives no key. RoPE scaling and special token ids need no entry.
    config: Mapping[str, str]
    # config.json keys with fixed values
    constants: Mapping[str, object] = field(default_factory=dict)
    # Hugging Face tensor name -> GGUF tensor name; "{i}" is the layer. Names that the file lacks
    # are skipped
    tensors: Mapping[str, str] = field(default_factory=dict)
    # Hugging Face tensor name -> config key of the head count whose rows llama.cpp permuted
    # (interleaved RoPE pairs); undone by a row permutation, exact for quantised rows
    permuted: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Family(Protocol):
    """The five parts, and the name and contract number under which they are supplied."""

    name: str
    contract: int
    gguf: Mapping[str, GgufMapping]  # by general.architecture; empty when GGUF does not know it

    def spec(self, checkpoint: Checkpoint) -> ModelSpec: ...

    def tokenizer(self, checkpoint: Checkpoint) -> Tokenizer: ...

    def template(self, checkpoint: Checkpoint) -> ChatTemplate | None: ...

    def sampler(self, checkpoint: Checkpoint) -> Sampler: ...

    def graph(self, checkpoint: Checkpoint, options: GraphOptions) -> Graph: ...

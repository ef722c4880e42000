"""`StandardFamily`: a text decoder whose tokenizer, template and sampler are the usual ones.

A first-party family gives a function from checkpoint and options to a `Decoder`, and its GGUF
mappings; the rest is here. A family that differs more implements the `Family` protocol itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.family.contract import CONTRACT, GgufMapping, GraphOptions, ModelSpec, Sampler
from edgeserve.family.end_of_text import eos_ids
from edgeserve.family.model_config import ModelConfig
from edgeserve.graph.blocks import Decoder, decoder
from edgeserve.graph.rope import RopeParameters
from edgeserve.graph.values import Graph

if TYPE_CHECKING:
    from edgeserve.text.template import ChatTemplate
    from edgeserve.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardFamily:
    """A decoder-only text family, described by data and one function."""

    name: str
    describe: Callable[[Checkpoint, GraphOptions], Decoder]
    gguf: Mapping[str, GgufMapping] = field(default_factory=dict)
    # The family's own sampler part; generation_config.json is merged by the pipeline.
    sampling: Callable[[Checkpoint], Sampler] = lambda _checkpoint: Sampler()
    contract: int = CONTRACT

    def spec(self, checkpoint: Checkpoint) -> ModelSpec:
        config = ModelConfig(checkpoint)
        return ModelSpec(
            layers=config.layers(),
            vocab=config.vocab(),
            context=RopeParameters.from_config(checkpoint.config, 2).scaled_context(),
            eos_ids=eos_ids(checkpoint),
        )

    def tokenizer(self, checkpoint: Checkpoint) -> Tokenizer:
        from edgeserve.text.tokenizer import Tokenizer

        return Tokenizer.from_checkpoint(checkpoint)

    def template(self, checkpoint: Checkpoint) -> ChatTemplate | None:
        from edgeserve.text.template import ChatTemplate

        return ChatTemplate.from_checkpoint(checkpoint)

    def sampler(self, checkpoint: Checkpoint) -> Sampler:
        return self.sampling(checkpoint)

    def graph(self, checkpoint: Checkpoint, options: GraphOptions) -> Graph:
        return decoder(self.describe(checkpoint, options))


# GGUF metadata and tensor names that all Llama-like architectures share; a family adds its own.
GGUF_CONFIG: Mapping[str, str] = {
    "hidden_size": "{arch}.embedding_length",
    "intermediate_size": "{arch}.feed_forward_length",
    "num_hidden_layers": "{arch}.block_count",
    "num_attention_heads": "{arch}.attention.head_count",
    "num_key_value_heads": "{arch}.attention.head_count_kv",
    "head_dim": "{arch}.attention.key_length",
    "rms_norm_eps": "{arch}.attention.layer_norm_rms_epsilon",
    "vocab_size": "{arch}.vocab_size",
    "max_position_embeddings": "{arch}.context_length",
    "num_local_experts": "{arch}.expert_count",
    "rope_theta": "{arch}.rope.freq_base",
}
GGUF_CONSTANTS: Mapping[str, Any] = {"hidden_act": "silu"}
GGUF_TENSORS: Mapping[str, str] = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "model.layers.{i}.input_layernorm.weight": "blk.{i}.attn_norm.weight",
    "model.layers.{i}.post_attention_layernorm.weight": "blk.{i}.ffn_norm.weight",
    **{
        f"model.layers.{{i}}.self_attn.{name}_proj.{part}": f"blk.{{i}}.attn_{gguf}.{part}"
        for name, gguf in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "output"))
        for part in ("weight", "bias")
    },
    **{
        f"model.layers.{{i}}.mlp.{name}_proj.{part}": f"blk.{{i}}.ffn_{name}.{part}"
        for name in ("gate", "up", "down")
        for part in ("weight", "bias")
    },
}

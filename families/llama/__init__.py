"""Llama and every checkpoint that is the same network: grouped-query attention, rotary embedding
with any scaling, optional biases, optional sliding window, a gated MLP, RMS norms before each."""

from __future__ import annotations

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.errors import CheckpointError
from edgeserve.family.contract import GgufMapping, GraphOptions
from edgeserve.family.model_config import ModelConfig
from edgeserve.family.standard import GGUF_CONFIG, GGUF_CONSTANTS, GGUF_TENSORS, StandardFamily
from edgeserve.graph.blocks import AttentionBlock, Decoder, LayerBlock, MlpBlock
from edgeserve.graph.rope import rope

# What a missing `sliding_window` means, by model type; others have no window.
DEFAULT_WINDOWS = {"mistral": 4096, "ministral": 4096}


def describe(checkpoint: Checkpoint, options: GraphOptions) -> Decoder:
    config = ModelConfig(checkpoint)
    if config.integer("num_local_experts", 0, minimum=0):
        raise CheckpointError(
            f"'{checkpoint.identity}' is a mixture of experts, which family 'llama' does not run"
        )
    layers, heads, eps = (
        config.layers(),
        config.integer("num_attention_heads"),
        config.number("rms_norm_eps", 1e-6),
    )
    first = "model.layers.0.self_attn"
    head_dim = config.head_dim()
    rotary = rope(checkpoint.config, head_dim, options.max_model_len)
    mlp = MlpBlock(
        width=config.integer("intermediate_size"),
        activation=config.activation(),
        bias=config.flag("mlp_bias", config.has_tensor("model.layers.0.mlp.up_proj.bias")),
    )
    out_bias = config.flag("attention_bias", config.has_tensor(f"{first}.o_proj.bias"))
    out_bias = config.flag("attention_out_bias", out_bias)  # Seed-OSS tells them apart
    blocks = [
        AttentionBlock(
            heads=heads,
            kv_heads=config.integer("num_key_value_heads", heads),
            head_dim=head_dim,
            rope=rotary,
            window=window,
            qkv_bias=config.flag("attention_bias", config.has_tensor(f"{first}.q_proj.bias")),
            out_bias=out_bias,
        )
        for window in config.layer_windows(layers, _window(config, checkpoint.model_type))
    ]
    return Decoder(
        vocab=config.vocab(),
        hidden=config.integer("hidden_size"),
        layers=tuple(LayerBlock(attention=block, mlp=mlp, eps=eps) for block in blocks),
        eps=eps,
        tied=config.tied(),
    )


def _window(config: ModelConfig, model_type: str) -> int | None:
    if model_type not in DEFAULT_WINDOWS:
        return None
    if "sliding_window" in config.values and config.values["sliding_window"] is None:
        return None
    return config.integer("sliding_window", DEFAULT_WINDOWS[model_type])


FAMILY = StandardFamily(
    name="llama",
    describe=describe,
    gguf={
        "llama": GgufMapping(
            model_type="llama",
            config=GGUF_CONFIG,
            constants=GGUF_CONSTANTS,
            tensors=GGUF_TENSORS,
            permuted={
                f"model.layers.{{i}}.self_attn.{name}_proj.{part}": heads
                for name, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads"))
                for part in ("weight", "bias")
            },
        )
    },
)

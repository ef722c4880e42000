"""Qwen 1.5, 2 and 2.5 (dense): the Llama network with biases on q, k and v, and a sliding window in
the upper layers where a checkpoint asks for it."""

from __future__ import annotations

from edgeserve.checkpoint.view import Checkpoint
from edgeserve.family.contract import GgufMapping, GraphOptions
from edgeserve.family.model_config import ModelConfig
from edgeserve.family.standard import GGUF_CONFIG, GGUF_CONSTANTS, GGUF_TENSORS, StandardFamily
from edgeserve.graph.blocks import AttentionBlock, Decoder, LayerBlock, MlpBlock
from edgeserve.graph.rope import rope


def describe(checkpoint: Checkpoint, options: GraphOptions) -> Decoder:
    config = ModelConfig(checkpoint)
    layers, heads, eps = (
        config.layers(),
        config.integer("num_attention_heads"),
        config.number("rms_norm_eps", 1e-6),
    )
    rotary = rope(checkpoint.config, config.head_dim(), options.max_model_len)
    mlp = MlpBlock(width=config.integer("intermediate_size"), activation=config.activation())
    sliding = config.flag("use_sliding_window", False)
    windows = config.layer_windows(
        layers,
        config.integer("sliding_window", 4096) if sliding else None,
        config.integer("max_window_layers", 28, minimum=0),
    )
    blocks = [
        AttentionBlock(
            heads=heads,
            kv_heads=config.integer("num_key_value_heads", heads),
            head_dim=config.head_dim(),
            rope=rotary,
            window=window,
            qkv_bias=True,
        )
        for window in windows
    ]
    return Decoder(
        vocab=config.vocab(),
        hidden=config.integer("hidden_size"),
        layers=tuple(LayerBlock(attention=block, mlp=mlp, eps=eps) for block in blocks),
        eps=eps,
        tied=config.tied(),
    )


FAMILY = StandardFamily(
    name="qwen2",
    describe=describe,
    gguf={
        "qwen2": GgufMapping(
            model_type="qwen2", config=GGUF_CONFIG, constants=GGUF_CONSTANTS, tensors=GGUF_TENSORS
        )
    },
)

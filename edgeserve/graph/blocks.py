"""Shared layers: a family describes them as data, these functions put them into a graph.

Weight names are Hugging Face's below a prefix: `{prefix}.q_proj.weight` and so on. A family whose
checkpoint names them differently maps the names, not the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeserve.graph.build import Builder
from edgeserve.graph.ops import ActivationKind, Attention, Rope
from edgeserve.graph.values import Graph, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBlock:
    """Projections, optional per-head norms of q and k, rotary embedding, attention, output."""

    heads: int
    kv_heads: int
    head_dim: int
    rope: Rope | None
    scale: float | None = None  # default: 1 / sqrt(head_dim)
    window: int | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm_eps: float | None = None  # set: RMS norm of each head of q and k, before rope


@dataclass(frozen=True, slots=True, kw_only=True)
class MlpBlock:
    """down(activation(gate(x)) * up(x))."""

    width: int
    activation: ActivationKind = "silu"
    bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBlock:
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    attention: AttentionBlock
    mlp: MlpBlock
    eps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A whole decoder of pre-norm layers, from ids to logits."""

    vocab: int
    hidden: int
    layers: tuple[LayerBlock, ...]
    eps: float
    tied: bool  # the head is the embedding table
    prefix: str = "model"
    head: str = "lm_head.weight"


def attention(b: Builder, x: Value, prefix: str, block: AttentionBlock, layer: int) -> Value:
    q = _project(b, x, f"{prefix}.q_proj", block.heads * block.head_dim, block.qkv_bias)
    k = _project(b, x, f"{prefix}.k_proj", block.kv_heads * block.head_dim, block.qkv_bias)
    v = _project(b, x, f"{prefix}.v_proj", block.kv_heads * block.head_dim, block.qkv_bias)
    if block.qk_norm_eps is not None:
        q = b.rms_norm(q, f"{prefix}.q_norm.weight", block.qk_norm_eps, group=block.head_dim)
        k = b.rms_norm(k, f"{prefix}.k_norm.weight", block.qk_norm_eps, group=block.head_dim)
    if block.rope is not None:
        q, k = b.rope(q, block.rope), b.rope(k, block.rope)
    op = Attention(
        layer=layer,
        heads=block.heads,
        kv_heads=block.kv_heads,
        head_dim=block.head_dim,
        scale=block.head_dim**-0.5 if block.scale is None else block.scale,
        window=block.window,
    )
    return _project(b, b.attention(q, k, v, op), f"{prefix}.o_proj", x.width, block.out_bias)


def gated_mlp(b: Builder, x: Value, prefix: str, block: MlpBlock) -> Value:
    gate = _project(b, x, f"{prefix}.gate_proj", block.width, block.bias)
    up = _project(b, x, f"{prefix}.up_proj", block.width, block.bias)
    product = b.multiply(b.activation(gate, block.activation), up)
    return _project(b, product, f"{prefix}.down_proj", x.width, block.bias)


def decoder_layer(b: Builder, x: Value, prefix: str, block: LayerBlock, layer: int) -> Value:
    normed = b.rms_norm(x, f"{prefix}.input_layernorm.weight", block.eps)
    x = b.add(x, attention(b, normed, f"{prefix}.self_attn", block.attention, layer))
    normed = b.rms_norm(x, f"{prefix}.post_attention_layernorm.weight", block.eps)
    return b.add(x, gated_mlp(b, normed, f"{prefix}.mlp", block.mlp))


def decoder(description: Decoder) -> Graph:
    """The graph of a decoder."""
    b = Builder()
    table = f"{description.prefix}.embed_tokens.weight"
    x = b.embed(table, description.vocab, description.hidden)
    for layer, block in enumerate(description.layers):
        x = decoder_layer(b, x, f"{description.prefix}.layers.{layer}", block, layer)
    x = b.rms_norm(b.select_rows(x), f"{description.prefix}.norm.weight", description.eps)
    head = table if description.tied else description.head
    return b.graph(b.linear(x, head, description.vocab))


def _project(b: Builder, x: Value, name: str, width: int, bias: bool) -> Value:
    return b.linear(x, f"{name}.weight", width, f"{name}.bias" if bias else None)

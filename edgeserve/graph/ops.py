"""The operations of the engine graph: frozen data, no behaviour.

Shapes: a value is a matrix [rows, width]; rows are the tokens of a step ("tokens") or, after
`SelectRows`, the rows whose logits are wanted ("outputs"). Weights are names, bound at load.
A weight of a `Linear` is [out, in] as in PyTorch. State operations (`Attention`) read and write
the KV pages of the spans in the step; everything else is dense and row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ActivationKind = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]


@dataclass(frozen=True, slots=True)
class Embed:
    """ids -> [tokens, width]: rows of `weight`, times `scale`."""

    weight: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Linear:
    """x [rows, in] -> x @ weight.T + bias."""

    weight: str
    bias: str | None = None


@dataclass(frozen=True, slots=True)
class FusedLinear:
    """x -> one output per part. Made by passes: parts share their input (q, k, v; gate, up)."""

    parts: tuple[Linear, ...]


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """x -> x / sqrt(mean(x^2) + eps) * (weight + offset), per row; in groups of `group` columns
    when set (q and k norms per head: group = head size, weight [head size])."""

    weight: str
    eps: float
    offset: float = 0.0  # 1.0 for Gemma's stored-minus-one weights
    group: int | None = None


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """x -> (x - mean) / sqrt(var + eps) * weight + bias, per row."""

    weight: str
    bias: str | None
    eps: float


@dataclass(frozen=True, slots=True)
class Rope:
    """x [rows, heads * head_dim] -> rotary embedding of the first `rotary_dim` columns of each
    head, at each row's position. Pairs are (i, i + rotary_dim / 2) ("half", as in Hugging Face
    checkpoints) or (2i, 2i + 1) ("interleaved"). `frequencies` has rotary_dim / 2 entries in
    radians per position, all length-dependent scaling already applied; cos and sin are multiplied
    by `attention_factor` (YaRN, LongRoPE)."""

    head_dim: int
    rotary_dim: int
    frequencies: tuple[float, ...]
    attention_factor: float = 1.0
    layout: Literal["half", "interleaved"] = "half"


@dataclass(frozen=True, slots=True)
class Attention:
    """q [tokens, heads * head_dim], k, v [tokens, kv_heads * head_dim] -> [tokens, heads *
    value_dim]. Writes k and v of this step to the pages of `layer`, then attends causally over
    all positions of the row's sequence up to its own: softmax(scale * q.k) v. `window` keeps the
    last `window` positions, own included. `sinks` names a weight [heads] that joins the softmax
    as a logit without value. `soft_cap` c replaces s by c * tanh(s / c)."""

    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    scale: float
    window: int | None = None
    soft_cap: float | None = None
    sinks: str | None = None


@dataclass(frozen=True, slots=True)
class Activation:
    """x -> f(x), element by element."""

    kind: ActivationKind


@dataclass(frozen=True, slots=True)
class GatedActivation:
    """gate, up -> f(gate) * up. Made by passes from Activation and Multiply."""

    kind: ActivationKind


@dataclass(frozen=True, slots=True)
class Add:
    """a, b -> a + b."""


@dataclass(frozen=True, slots=True)
class Multiply:
    """a, b -> a * b."""


@dataclass(frozen=True, slots=True)
class Scale:
    """x -> x * factor."""

    factor: float


@dataclass(frozen=True, slots=True)
class SoftCap:
    """x -> cap * tanh(x / cap)."""

    cap: float


@dataclass(frozen=True, slots=True)
class ResidualNorm:
    """residual, x -> (residual + x, norm(residual + x)). Made by passes from Add and RmsNorm."""

    norm: RmsNorm


@dataclass(frozen=True, slots=True)
class SelectRows:
    """x [tokens, width] -> [outputs, width]: the rows whose logits the step wants."""


Op = (
    Embed
    | Linear
    | FusedLinear
    | RmsNorm
    | LayerNorm
    | Rope
    | Attention
    | Activation
    | GatedActivation
    | Add
    | Multiply
    | Scale
    | SoftCap
    | ResidualNorm
    | SelectRows
)

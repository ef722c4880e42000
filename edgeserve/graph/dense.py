"""What each dense operation means, in NumPy: row by row, without state. Used by reference.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edgeserve.errors import GraphError
from edgeserve.graph.ops import (
    Activation,
    ActivationKind,
    Add,
    FusedLinear,
    GatedActivation,
    LayerNorm,
    Linear,
    Multiply,
    Op,
    ResidualNorm,
    RmsNorm,
    Scale,
    SoftCap,
)

Array = np.ndarray
Weights = Mapping[str, Array]


def evaluate(op: Op, inputs: Sequence[Array], weights: Weights) -> tuple[Array, ...]:
    """The results of a dense operation."""
    meaning = MEANINGS.get(type(op))
    if meaning is None:
        raise GraphError(f"the reference interpreter does not know {type(op).__name__}")
    return meaning(op, inputs, weights)


def linear(op: Linear, x: Array, weights: Weights) -> Array:
    result: Array = x @ weights[op.weight].T
    return result if op.bias is None else result + weights[op.bias]


def rms_norm(op: RmsNorm, x: Array, weights: Weights) -> Array:
    width = op.group or x.shape[1]
    groups = x.reshape(len(x), x.shape[1] // width, width)
    mean = np.mean(groups * groups, axis=-1, keepdims=True)
    scale = weights[op.weight] + x.dtype.type(op.offset)
    result: Array = groups / np.sqrt(mean + x.dtype.type(op.eps)) * scale
    return result.reshape(x.shape)


def layer_norm(op: LayerNorm, x: Array, weights: Weights) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    result: Array = centred / np.sqrt(variance + x.dtype.type(op.eps)) * weights[op.weight]
    return result if op.bias is None else result + weights[op.bias]


def activate(kind: ActivationKind, x: Array) -> Array:
    return ACTIVATIONS[kind](x)


def _silu(x: Array) -> Array:
    with np.errstate(over="ignore"):  # exp(-x) of a very negative x is inf, and x / inf is right
        result: Array = x / (1 + np.exp(-x))
    return result


def _gelu(x: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64) / math.sqrt(2))
    result: Array = (0.5 * x * (1 + erf)).astype(x.dtype)
    return result


def _gelu_tanh(x: Array) -> Array:
    inner = x.dtype.type(math.sqrt(2 / math.pi)) * (x + x.dtype.type(0.044715) * x * x * x)
    result: Array = x.dtype.type(0.5) * x * (1 + np.tanh(inner))
    return result


def _relu(x: Array) -> Array:
    result: Array = np.maximum(x, 0)
    return result


def _relu2(x: Array) -> Array:
    result: Array = np.square(_relu(x))
    return result


def _residual_norm(
    op: ResidualNorm, inputs: Sequence[Array], weights: Weights
) -> tuple[Array, ...]:
    total = inputs[0] + inputs[1]
    return total, rms_norm(op.norm, total, weights)


ACTIVATIONS: dict[ActivationKind, Callable[[Array], Array]] = {
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": _relu,
    "relu2": _relu2,
}

# Typed loosely: the key of an entry is the type that its function is called with.
MEANINGS: dict[type, Callable[..., tuple[Array, ...]]] = {
    Linear: lambda op, x, w: (linear(op, x[0], w),),
    FusedLinear: lambda op, x, w: tuple(linear(part, x[0], w) for part in op.parts),
    RmsNorm: lambda op, x, w: (rms_norm(op, x[0], w),),
    LayerNorm: lambda op, x, w: (layer_norm(op, x[0], w),),
    Activation: lambda op, x, _: (activate(op.kind, x[0]),),
    GatedActivation: lambda op, x, _: (activate(op.kind, x[0]) * x[1],),
    Add: lambda _op, x, _: (x[0] + x[1],),
    Multiply: lambda _op, x, _: (x[0] * x[1],),
    Scale: lambda op, x, _: (x[0] * x[0].dtype.type(op.factor),),
    SoftCap: lambda op, x, _: (x[0].dtype.type(op.cap) * np.tanh(x[0] / x[0].dtype.type(op.cap)),),
    ResidualNorm: _residual_norm,
}

"""A graph as data: values, nodes, and what a backend must know before it compiles them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeserve.graph.ops import Op

Rows = Literal["tokens", "outputs"]


@dataclass(frozen=True, slots=True)
class Value:
    """The result of a node: a matrix [rows, width] of the backend's activation type."""

    id: int
    rows: Rows
    width: int


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: inputs -> outputs. Embed has no inputs: it reads the ids of the step."""

    op: Op
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class WeightSpec:
    """A named weight and the shape the graph expects. `matrix` weights may be quantised."""

    name: str
    shape: tuple[int, ...]
    matrix: bool


@dataclass(frozen=True, slots=True)
class KvLayer:
    """Keys and values of one layer in a page: [page tokens, kv_heads, head_dim] each."""

    layer: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole network, nodes in execution order. `logits` is [outputs, vocab]."""

    nodes: tuple[Node, ...]
    weights: tuple[WeightSpec, ...]
    kv: tuple[KvLayer, ...]
    logits: Value

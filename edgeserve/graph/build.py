"""`Builder` makes a `Graph` one operation at a time and refuses what does not fit together.

A family calls the layers of blocks.py, which call the builder; each method returns the value it
made. Weights are declared by use: the same name twice is fine as long as its shape is the same
(tied embeddings).
"""

from __future__ import annotations

from edgeserve.errors import GraphError
from edgeserve.graph.ops import (
    Activation,
    ActivationKind,
    Add,
    Attention,
    Embed,
    LayerNorm,
    Linear,
    Multiply,
    Op,
    RmsNorm,
    Rope,
    Scale,
    SelectRows,
    SoftCap,
)
from edgeserve.graph.values import Graph, KvLayer, Node, Rows, Value, WeightSpec


class Builder:
    """A graph under construction. Use one builder for one graph."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._weights: dict[str, WeightSpec] = {}
        self._kv: dict[int, KvLayer] = {}
        self._values = 0

    # Dense operations ------------------------------------------------------------------------

    def embed(self, weight: str, vocab: int, width: int, scale: float = 1.0) -> Value:
        """Rows of an embedding table for the ids of the step."""
        self._weight(weight, (vocab, width), matrix=True)
        return self._node(Embed(weight, scale), (), "tokens", width)

    def linear(self, x: Value, weight: str, width: int, bias: str | None = None) -> Value:
        """x @ weight.T + bias with weight [width, x.width]."""
        self._weight(weight, (width, x.width), matrix=True)
        if bias is not None:
            self._weight(bias, (width,))
        return self._node(Linear(weight, bias), (x,), x.rows, width)

    def rms_norm(
        self, x: Value, weight: str, eps: float, offset: float = 0.0, group: int | None = None
    ) -> Value:
        """RMS norm per row, or per group of columns (per head)."""
        if group is not None and x.width % group:
            raise GraphError(
                f"norm '{weight}' works on groups of {group} columns, its input has {x.width}"
            )
        self._weight(weight, (group or x.width,))
        return self._node(RmsNorm(weight, eps, offset, group), (x,), x.rows, x.width)

    def layer_norm(self, x: Value, weight: str, bias: str | None, eps: float) -> Value:
        self._weight(weight, (x.width,))
        if bias is not None:
            self._weight(bias, (x.width,))
        return self._node(LayerNorm(weight, bias, eps), (x,), x.rows, x.width)

    def activation(self, x: Value, kind: ActivationKind) -> Value:
        return self._node(Activation(kind), (x,), x.rows, x.width)

    def add(self, a: Value, b: Value) -> Value:
        self._same_shape("add", a, b)
        return self._node(Add(), (a, b), a.rows, a.width)

    def multiply(self, a: Value, b: Value) -> Value:
        self._same_shape("multiply", a, b)
        return self._node(Multiply(), (a, b), a.rows, a.width)

    def scale(self, x: Value, factor: float) -> Value:
        """x * factor; a factor of 1 adds nothing to the graph."""
        return x if factor == 1.0 else self._node(Scale(factor), (x,), x.rows, x.width)

    def soft_cap(self, x: Value, cap: float) -> Value:
        return self._node(SoftCap(cap), (x,), x.rows, x.width)

    def select_rows(self, x: Value) -> Value:
        """The rows whose logits the step wants."""
        self._on_tokens("select_rows", x)
        return self._node(SelectRows(), (x,), "outputs", x.width)

    # Position and state ------------------------------------------------------------------------

    def rope(self, x: Value, rope: Rope) -> Value:
        self._on_tokens("rope", x)
        if x.width % rope.head_dim:
            raise GraphError(f"rope has heads of {rope.head_dim} columns, its input has {x.width}")
        if rope.rotary_dim > rope.head_dim or rope.rotary_dim != 2 * len(rope.frequencies):
            raise GraphError(
                f"rope turns {rope.rotary_dim} of {rope.head_dim} columns with "
                f"{len(rope.frequencies)} frequencies; it needs {rope.rotary_dim // 2}"
            )
        return self._node(rope, (x,), x.rows, x.width)

    def attention(self, q: Value, k: Value, v: Value, attention: Attention) -> Value:
        """Attention over the pages of `attention.layer`; each layer number is used once."""
        self._check_attention(q, k, v, attention)
        if attention.sinks is not None:
            self._weight(attention.sinks, (attention.heads,))
        self._kv[attention.layer] = KvLayer(attention.layer, attention.kv_heads, attention.head_dim)
        return self._node(attention, (q, k, v), q.rows, q.width)

    # The result ----------------------------------------------------------------------------------

    def graph(self, logits: Value) -> Graph:
        """The finished graph."""
        if logits.rows != "outputs":
            raise GraphError("logits must come after select_rows")
        if sorted(self._kv) != list(range(len(self._kv))):
            raise GraphError(f"attention layers must be numbered from 0, found {sorted(self._kv)}")
        kv = tuple(self._kv[layer] for layer in sorted(self._kv))
        return Graph(tuple(self._nodes), tuple(self._weights.values()), kv, logits)

    # --------------------------------------------------------------------------------------------

    def _node(self, op: Op, inputs: tuple[Value, ...], rows: Rows, width: int) -> Value:
        value = Value(self._values, rows, width)
        self._values += 1
        self._nodes.append(Node(op, inputs, (value,)))
        return value

    def _weight(self, name: str, shape: tuple[int, ...], *, matrix: bool = False) -> None:
        if min(shape) < 1:
            raise GraphError(f"weight '{name}' has the impossible shape {list(shape)}")
        spec = WeightSpec(name, shape, matrix)
        known = self._weights.setdefault(name, spec)
        if known.shape != shape:
            raise GraphError(
                f"weight '{name}' is used with shapes {list(known.shape)} and {list(shape)}"
            )

    def _check_attention(self, q: Value, k: Value, v: Value, a: Attention) -> None:
        for name, x, heads in (("q", q, a.heads), ("k", k, a.kv_heads), ("v", v, a.kv_heads)):
            self._on_tokens(f"attention {name}", x)
            if x.width != heads * a.head_dim:
                raise GraphError(
                    f"attention of layer {a.layer}: {name} has {x.width} columns, "
                    f"{heads} heads of {a.head_dim} need {heads * a.head_dim}"
                )
        if a.heads % a.kv_heads:
            raise GraphError(
                f"attention of layer {a.layer}: {a.heads} heads do not share {a.kv_heads} kv heads"
            )
        if a.window is not None and a.window < 1:
            raise GraphError(f"attention of layer {a.layer}: a window of {a.window} positions")
        if a.layer in self._kv:
            raise GraphError(f"attention layer {a.layer} is used twice")

    @staticmethod
    def _same_shape(what: str, a: Value, b: Value) -> None:
        if (a.rows, a.width) != (b.rows, b.width):
            raise GraphError(
                f"{what} of [{a.rows}, {a.width}] and [{b.rows}, {b.width}]: shapes differ"
            )

    @staticmethod
    def _on_tokens(what: str, x: Value) -> None:
        if x.rows != "tokens":
            raise GraphError(f"{what} must come before select_rows")

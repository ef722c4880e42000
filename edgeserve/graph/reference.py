"""A plain NumPy interpreter of engine graphs: the oracle that every backend is checked against.

It keeps keys and values in pages of the same shape and addressing as a backend's and runs the same
steps, so the whole engine can run on it (`_native/oracle.CallbackForward(reference.run, ...)`).
Clear and slow on purpose; it fuses nothing and calls no native code of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeserve.graph.dense import evaluate
from edgeserve.graph.ops import Attention, Embed, Rope, SelectRows
from edgeserve.graph.values import Graph, Node

Array = np.ndarray
Weights = Callable[[str], Array]  # float values of a named weight; called once for each


@dataclass(frozen=True, slots=True)
class Span:
    """A run of tokens of one sequence: positions [start, start + count), and its page ids."""

    start: int
    count: int
    pages: Sequence[int]


class Reference:
    """One network with its weights and its pages of keys and values."""

    def __init__(
        self,
        graph: Graph,
        weights: Weights,
        *,
        pages: int,
        page_tokens: int = 16,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> None:
        self.graph = graph
        self.page_tokens = page_tokens
        self._dtype = dtype
        self._weights = {
            spec.name: self._bind(spec.name, spec.shape, weights) for spec in graph.weights
        }
        shapes = [(pages, page_tokens, kv.kv_heads, kv.head_dim) for kv in graph.kv]
        self._keys = [np.zeros(shape, dtype) for shape in shapes]
        self._values = [np.zeros(shape, dtype) for shape in shapes]

    def run(
        self,
        ids: Sequence[int] | Array | memoryview,
        spans: Iterable[tuple[int, int, Any]],
        outputs: Sequence[int] | Array | memoryview,
        logits: Array | memoryview | None = None,
    ) -> Array:
        """One step: logits of the rows `outputs`, also written into `logits` when given."""
        step = _Step(
            np.asarray(ids, np.int64),
            [
                Span(start, count, np.asarray(pages, np.int64).tolist())
                for start, count, pages in spans
            ],
            np.asarray(outputs, np.int64),
        )
        values: dict[int, Array] = {}
        for node in self.graph.nodes:
            results = self._node(node, [values[value.id] for value in node.inputs], step)
            values.update(zip((value.id for value in node.outputs), results, strict=True))
        result = values[self.graph.logits.id]
        if logits is not None and len(result):
            np.asarray(logits)[:] = result
        return result

    def copy_page(self, source: int, target: int) -> None:
        for storage in (*self._keys, *self._values):
            storage[target] = storage[source]

    def _bind(self, name: str, shape: tuple[int, ...], weights: Weights) -> Array:
        value = np.asarray(weights(name), self._dtype)
        if value.shape != shape:
            raise ValueError(f"weight '{name}' has shape {value.shape}, the graph expects {shape}")
        return value

    def _node(self, node: Node, inputs: list[Array], step: _Step) -> tuple[Array, ...]:
        op = node.op
        if isinstance(op, Embed):
            return (self._weights[op.weight][step.ids] * self._dtype(op.scale),)
        if isinstance(op, SelectRows):
            return (inputs[0][step.outputs],)
        if isinstance(op, Rope):
            return (rotate(inputs[0], op, step.positions),)
        if isinstance(op, Attention):
            return (self._attention(op, step, *inputs),)
        return evaluate(op, inputs, self._weights)

    def _attention(self, op: Attention, step: _Step, q: Array, k: Array, v: Array) -> Array:
        result = np.empty_like(q)
        row = 0
        for span in step.spans:
            rows = slice(row, row + span.count)
            self._write(op, span, k[rows], v[rows])
            for offset in range(span.count):
                position = span.start + offset
                result[row + offset] = self._attend(op, span, q[row + offset], position)
            row += span.count
        return result

    def _write(self, op: Attention, span: Span, k: Array, v: Array) -> None:
        shape = (op.kv_heads, op.head_dim)
        for offset in range(span.count):
            page, place = divmod(span.start + offset, self.page_tokens)
            self._keys[op.layer][span.pages[page], place] = k[offset].reshape(shape)
            self._values[op.layer][span.pages[page], place] = v[offset].reshape(shape)

    def _attend(self, op: Attention, span: Span, q: Array, position: int) -> Array:
        """One row: all its heads over positions [first, position]."""
        first = 0 if op.window is None else max(0, position + 1 - op.window)
        places = np.arange(first, position + 1)
        pages = np.asarray(span.pages)[places // self.page_tokens]
        keys = self._keys[op.layer][pages, places % self.page_tokens]
        values = self._values[op.layer][pages, places % self.page_tokens]
        group = op.heads // op.kv_heads
        q = q.reshape(op.kv_heads, group, op.head_dim)
        scores = np.einsum("hgd,phd->hgp", q, keys) * self._dtype(op.scale)
        if op.soft_cap is not None:
            scores = self._dtype(op.soft_cap) * np.tanh(scores / self._dtype(op.soft_cap))
        if op.sinks is not None:
            sinks = self._weights[op.sinks].reshape(op.kv_heads, group, 1)
            scores = np.concatenate([scores, sinks], axis=-1)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hgp,phd->hgd", shares[..., : len(places)], values)
        row: Array = mixed.reshape(-1)
        return row


class _Step:
    """The tokens of one step with the position of each."""

    def __init__(self, ids: Array, spans: list[Span], outputs: Array) -> None:
        self.ids = ids
        self.spans = spans
        self.outputs = outputs
        runs = [np.arange(span.start, span.start + span.count) for span in spans]
        self.positions = np.concatenate(runs)


def rotate(x: Array, op: Rope, positions: Array) -> Array:
    """Rotary embedding. Angles are products of float32, as transformers computes them, in both
    precisions."""
    angles = positions[:, None].astype(np.float32) * np.asarray(op.frequencies, np.float32)
    angles = angles.astype(x.dtype)[:, None, :]
    factor = x.dtype.type(op.attention_factor)
    cos, sin = np.cos(angles) * factor, np.sin(angles) * factor
    result: Array = x.reshape(len(x), -1, op.head_dim).copy()
    half = op.rotary_dim // 2
    if op.layout == "half":
        first, second = slice(0, half), slice(half, op.rotary_dim)
    else:
        first, second = slice(0, op.rotary_dim, 2), slice(1, op.rotary_dim, 2)
    a, b = result[..., first].copy(), result[..., second].copy()
    result[..., first] = a * cos - b * sin
    result[..., second] = b * cos + a * sin
    whole: Array = result.reshape(x.shape)
    return whole

"""The builder refuses what does not fit together, with the numbers."""

from __future__ import annotations

import pytest

from edgeserve.errors import GraphError
from edgeserve.graph.build import Builder
from edgeserve.graph.ops import Attention, Rope
from edgeserve.graph.values import KvLayer, Value, WeightSpec


def attention(layer: int = 0, **changes) -> Attention:
    values = {"layer": layer, "heads": 2, "kv_heads": 1, "head_dim": 4, "scale": 0.5, **changes}
    return Attention(**values)


def qkv(b: Builder) -> tuple[Value, Value, Value]:
    x = b.embed("table", 10, 8)
    return b.linear(x, "q", 8), b.linear(x, "k", 4), b.linear(x, "v", 4)


def test_a_graph_lists_weights_and_kv_layers() -> None:
    b = Builder()
    x = b.attention(*qkv(b), attention())
    graph = b.graph(b.linear(b.select_rows(x), "table", 10))
    assert graph.weights[0] == WeightSpec("table", (10, 8), matrix=True)
    assert [weight.name for weight in graph.weights] == ["table", "q", "k", "v"]
    assert graph.kv == (KvLayer(0, 1, 4),)
    assert (graph.logits.rows, graph.logits.width) == ("outputs", 10)


def test_a_weight_of_two_shapes_is_refused() -> None:
    b = Builder()
    x = b.embed("table", 10, 8)
    with pytest.raises(GraphError, match=r"'table' is used with shapes \[10, 8\] and \[11, 8\]"):
        b.linear(b.select_rows(x), "table", 11)


def test_adding_values_of_different_widths_is_refused() -> None:
    b = Builder()
    x = b.embed("table", 10, 8)
    with pytest.raises(GraphError, match=r"\[tokens, 8\] and \[tokens, 4\]"):
        b.add(x, b.linear(x, "w", 4))


def test_adding_all_rows_to_selected_rows_is_refused() -> None:
    b = Builder()
    x = b.embed("table", 10, 8)
    with pytest.raises(GraphError, match=r"\[tokens, 8\] and \[outputs, 8\]"):
        b.add(x, b.select_rows(x))


def test_logits_of_all_rows_are_refused() -> None:
    b = Builder()
    with pytest.raises(GraphError, match="after select_rows"):
        b.graph(b.linear(b.embed("table", 10, 8), "head", 10))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "q has 8 columns, 3 heads of 4 need 12"),
        ({"kv_heads": 2}, "k has 4 columns, 2 heads of 4 need 8"),
        ({"window": 0}, "a window of 0 positions"),
    ],
)
def test_attention_that_does_not_fit_is_refused(changes, message: str) -> None:
    b = Builder()
    with pytest.raises(GraphError, match=message):
        b.attention(*qkv(b), attention(**changes))


def test_an_attention_layer_is_used_once() -> None:
    b = Builder()
    q, k, v = qkv(b)
    b.attention(q, k, v, attention())
    with pytest.raises(GraphError, match="layer 0 is used twice"):
        b.attention(q, k, v, attention())


def test_attention_layers_are_numbered_from_zero() -> None:
    b = Builder()
    x = b.attention(*qkv(b), attention(layer=1))
    with pytest.raises(GraphError, match=r"numbered from 0, found \[1\]"):
        b.graph(b.select_rows(x))


def test_rope_needs_its_frequencies() -> None:
    b = Builder()
    x = b.embed("table", 10, 8)
    with pytest.raises(GraphError, match="4 of 4 columns with 1 frequencies; it needs 2"):
        b.rope(x, Rope(head_dim=4, rotary_dim=4, frequencies=(1.0,)))

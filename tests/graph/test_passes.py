"""Passes leave the results of a graph unchanged, and fuse what they promise to fuse."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph import passes
from edgeserve.graph.build import Builder
from edgeserve.graph.reference import Reference
from edgeserve.graph.values import Graph
from tests.data import tiny

PASSES = (
    passes.select_early,
    passes.fuse_gated_activation,
    passes.fuse_residual_norm,
    passes.fuse_linear,
    passes.fuse,
)


def tiny_graph(variant: str) -> tuple[Graph, tiny.TinyCheckpoint]:
    checkpoint = tiny.TinyCheckpoint(tiny.VARIANTS[variant])
    family = discover.load(checkpoint.model_type)
    return family.graph(checkpoint, GraphOptions(max_model_len=64)), checkpoint


def kinds(graph: Graph) -> Counter[str]:
    return Counter(type(node.op).__name__ for node in graph.nodes)


def assert_in_order(graph: Graph) -> None:
    """Every value is made once, before it is used."""
    made: set[int] = set()
    for node in graph.nodes:
        assert {value.id for value in node.inputs} <= made
        outputs = {value.id for value in node.outputs}
        assert not outputs & made
        made |= outputs
    assert graph.logits.id in made


@pytest.mark.parametrize("variant", ["llama-tied", "llama-biases", "qwen2-tied-window", "qwen3"])
@pytest.mark.parametrize("rewrite", PASSES, ids=lambda rewrite: rewrite.__name__)
def test_results_are_unchanged(rewrite, variant: str) -> None:
    graph, checkpoint = tiny_graph(variant)
    rewritten = rewrite(graph)
    assert_in_order(rewritten)
    spans = [(0, 5, [0, 1]), (0, 7, [3, 2])]
    ids, outputs = list(range(12)), [2, 4, 11]
    results = [
        Reference(g, checkpoint.dequantise, pages=4, page_tokens=4).run(ids, spans, outputs)
        for g in (graph, rewritten)
    ]
    np.testing.assert_array_equal(results[0], results[1])


def test_a_pass_does_not_change_its_input() -> None:
    graph, _ = tiny_graph("qwen3")
    nodes = graph.nodes
    passes.fuse(graph)
    assert graph.nodes is nodes


def test_a_layer_becomes_few_operations() -> None:
    graph, _ = tiny_graph("llama-tied")
    layers = 2
    counted = kinds(passes.fuse(graph))
    assert counted == {
        "Embed": 1,
        "RmsNorm": 1,  # the first; all others are fused into residuals
        "ResidualNorm": 2 * layers,
        "FusedLinear": 2 * layers,
        "Rope": 2 * layers,
        "Attention": layers,
        "Linear": 2 * layers + 1,
        "GatedActivation": layers,
        "SelectRows": 2,  # the attention's result and the residual of the last layer
    }


def test_the_last_layer_runs_on_selected_rows() -> None:
    graph, _ = tiny_graph("llama-tied")
    nodes = passes.select_early(graph).nodes
    last_attention = max(i for i, n in enumerate(nodes) if type(n.op).__name__ == "Attention")
    after = nodes[last_attention + 1 :]
    assert {value.rows for node in after for value in node.outputs} == {"outputs"}


def test_rows_selected_from_a_value_that_others_need_stay_selected() -> None:
    b = Builder()
    x = b.embed("table", 8, 4)
    graph = b.graph(b.linear(b.select_rows(x), "head", 8))
    assert kinds(passes.select_early(graph)) == {"Embed": 1, "SelectRows": 1, "Linear": 1}


def test_an_activation_with_two_readers_is_kept() -> None:
    b = Builder()
    x = b.select_rows(b.embed("table", 8, 4))
    gate = b.activation(x, "silu")
    graph = b.graph(b.linear(b.add(b.multiply(gate, x), gate), "head", 8))
    assert kinds(passes.fuse_gated_activation(graph))["Activation"] == 1

"""Rewrites of a graph that leave its results unchanged and give a backend larger operations.

Each pass is a pure function from graph to graph; `fuse` runs them in the order that suits a
backend. Values keep their ids, so a graph before and after can be compared value by value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

from edgeserve.graph.ops import (
    Activation,
    Add,
    Attention,
    Embed,
    FusedLinear,
    GatedActivation,
    Linear,
    Multiply,
    ResidualNorm,
    RmsNorm,
    Rope,
    SelectRows,
)
from edgeserve.graph.values import Graph, Node, Value


def fuse(graph: Graph) -> Graph:
    """All passes."""
    for rewrite in (select_early, fuse_gated_activation, fuse_residual_norm, fuse_linear):
        graph = rewrite(graph)
    return graph


def select_early(graph: Graph) -> Graph:
    """Drop the rows whose logits nobody wants as soon as no state operation needs them: the rest of
    the last layer then runs on the selected rows alone (on none, in a step without outputs)."""
    wanted = _wanted_rows(graph)
    fresh = count(1 + max(value.id for node in graph.nodes for value in node.outputs))
    selected: dict[int, Value] = {}
    nodes: list[Node] = []

    def select(value: Value) -> Value:
        if value.id not in selected:  # a value of all rows
            selected[value.id] = Value(next(fresh), "outputs", value.width)
            nodes.append(Node(SelectRows(), (value,), (selected[value.id],)))
        return selected[value.id]

    for node in graph.nodes:
        if isinstance(node.op, SelectRows):
            selected[node.outputs[0].id] = select(node.inputs[0])
        elif all(value.id in wanted for value in node.outputs):
            inputs = tuple(select(value) for value in node.inputs)
            outputs = tuple(replace(value, rows="outputs") for value in node.outputs)
            selected.update({value.id: value for value in outputs})
            nodes.append(Node(node.op, inputs, outputs))
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes), logits=selected[graph.logits.id])


def _wanted_rows(graph: Graph) -> set[int]:
    """Ids of the values of which only the selected rows are ever used and whose operation works row
    by row."""
    users = _users(graph)
    wanted: set[int] = set()
    for node in reversed(graph.nodes):
        if isinstance(node.op, Embed | Rope | Attention):
            continue
        used = [user for value in node.outputs for user in users.get(value.id, [])]
        on_selected = all(
            isinstance(user.op, SelectRows) or all(v.id in wanted for v in user.outputs)
            for user in used
        )
        if isinstance(node.op, SelectRows) or on_selected:
            wanted.update(value.id for value in node.outputs)
    return wanted


def fuse_gated_activation(graph: Graph) -> Graph:
    """f(gate) * up becomes one operation."""
    uses = _uses(graph)
    makers = {node.outputs[0].id: node for node in graph.nodes if isinstance(node.op, Activation)}
    gone: set[int] = set()
    nodes: list[Node] = []
    for node in graph.nodes:
        fused = None
        if isinstance(node.op, Multiply):
            for gate, up in (node.inputs, node.inputs[::-1]):
                maker = makers.get(gate.id)
                if maker is not None and uses[gate.id] == 1 and isinstance(maker.op, Activation):
                    fused = Node(
                        GatedActivation(maker.op.kind), (maker.inputs[0], up), node.outputs
                    )
                    gone.add(gate.id)
                    break
        nodes.append(fused or node)
    return replace(graph, nodes=tuple(n for n in nodes if n.outputs[0].id not in gone))


def fuse_residual_norm(graph: Graph) -> Graph:
    """residual + x and the first RMS norm of the sum become one operation with two results."""
    users = _users(graph)
    norms: dict[int, Node] = {}  # by id of the sum
    for node in graph.nodes:
        if isinstance(node.op, Add):
            for user in users.get(node.outputs[0].id, []):
                if isinstance(user.op, RmsNorm) and user.op.group is None:
                    norms[node.outputs[0].id] = user
                    break
    fused = {norm.outputs[0].id for norm in norms.values()}
    nodes: list[Node] = []
    for node in graph.nodes:
        norm = norms.get(node.outputs[0].id)
        if norm is not None and isinstance(norm.op, RmsNorm):
            outputs = (*node.outputs, *norm.outputs)
            nodes.append(Node(ResidualNorm(norm.op), node.inputs, outputs))
        elif node.outputs[0].id not in fused:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def fuse_linear(graph: Graph) -> Graph:
    """Linear operations on the same input (q, k and v; gate and up) become one operation."""
    groups: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Linear):
            groups.setdefault(node.inputs[0].id, []).append(node)
    nodes: list[Node] = []
    for node in graph.nodes:
        group = groups.get(node.inputs[0].id, []) if isinstance(node.op, Linear) else []
        if len(group) < 2:
            nodes.append(node)
        elif node is group[0]:
            parts = tuple(member.op for member in group if isinstance(member.op, Linear))
            outputs = tuple(member.outputs[0] for member in group)
            nodes.append(Node(FusedLinear(parts), node.inputs, outputs))
    return replace(graph, nodes=tuple(nodes))


def _users(graph: Graph) -> dict[int, list[Node]]:
    """The nodes that read each value, in order."""
    users: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            users.setdefault(value.id, []).append(node)
    return users


def _uses(graph: Graph) -> Counter[int]:
    uses = Counter(value.id for node in graph.nodes for value in node.inputs)
    uses[graph.logits.id] += 1
    return uses

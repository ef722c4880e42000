"""What a graph says about its values: who reads them, in which forms, and until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from edgeserve.backends.cpu.formats import Form
from edgeserve.graph import ops
from edgeserve.graph.values import Graph, Node, Value


class Uses:
    """Facts about the values of one graph, by their ids. `form_of` tells what a linear layer reads.

    `folded`: rotated queries and keys that are rotated in place while keys go to pages: the output
    of the rope -> its input. `direct`: values that may lie in the caller's buffer of logits.
    `wanted`: the forms in which a value is read. `dead`: values not needed after each node.
    """

    def __init__(self, graph: Graph, form_of: Callable[[ops.Linear], Form]) -> None:
        self.makers: dict[int, Node] = {
            value.id: node for node in graph.nodes for value in node.outputs
        }
        self._readers = Counter(value.id for node in graph.nodes for value in node.inputs)
        self._readers[graph.logits.id] += 1
        self.folded = self._find_folded(graph)
        self.direct = self._find_direct(graph)
        self.wanted = _find_wanted(graph, form_of)
        self.dead = self._find_dead(graph)

    def _find_folded(self, graph: Graph) -> dict[int, Value]:
        """Both ropes must turn the same way and have no other reader."""
        folded: dict[int, Value] = {}
        for node in graph.nodes:
            if not isinstance(node.op, ops.Attention):
                continue
            ropes = [self.makers[value.id] for value in node.inputs[:2]]
            first, second = ropes[0].op, ropes[1].op
            if isinstance(first, ops.Rope) and first == second and all(map(self._alone, ropes)):
                folded |= {rope.outputs[0].id: rope.inputs[0] for rope in ropes}
        return folded

    def _alone(self, node: Node) -> bool:
        """Whether nobody else reads the input, and one the output."""
        return self._readers[node.inputs[0].id] == 1 and self._readers[node.outputs[0].id] == 1

    def _find_direct(self, graph: Graph) -> set[int]:
        """The logits, and what only becomes them element by element."""
        direct: set[int] = set()
        value = graph.logits
        while True:
            direct.add(value.id)
            node = self.makers[value.id]
            if not isinstance(node.op, ops.Scale | ops.SoftCap | ops.Activation):
                return direct
            value = node.inputs[0]
            if self._readers[value.id] > 1 or value.rows != "outputs":
                return direct

    def _find_dead(self, graph: Graph) -> dict[int, list[int]]:
        last: dict[int, int] = {}
        for index, node in enumerate(graph.nodes):
            for value in (*node.inputs, *node.outputs):
                last[value.id] = index
                if value.id in self.folded:
                    last[self.folded[value.id].id] = index
        dead: dict[int, list[int]] = {}
        for value_id, index in last.items():
            dead.setdefault(index, []).append(value_id)
        return dead


def parts_of(op: ops.Linear | ops.FusedLinear) -> tuple[ops.Linear, ...]:
    return op.parts if isinstance(op, ops.FusedLinear) else (op,)


def _find_wanted(graph: Graph, form_of: Callable[[ops.Linear], Form]) -> dict[int, set[Form]]:
    wanted: dict[int, set[Form]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            forms: set[Form] = {"f32"}
            if isinstance(node.op, ops.Linear | ops.FusedLinear):
                forms = {form_of(part) for part in parts_of(node.op)}
            wanted.setdefault(value.id, set()).update(forms)
    return wanted

"""The interpreter against the definitions, on graphs of one operation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgeserve.graph.build import Builder
from edgeserve.graph.dense import activate
from edgeserve.graph.ops import Attention, Rope
from edgeserve.graph.reference import Reference, rotate

DRAW = np.random.RandomState(7)


def one_attention(**changes):
    """A network whose logits are its attention's result; q, k and v are columns of the table."""
    values = {"layer": 0, "heads": 4, "kv_heads": 2, "head_dim": 4, "scale": 0.5, **changes}
    b = Builder()
    x = b.embed("table", 12, 8)
    q, k, v = b.linear(x, "q", 16), b.linear(x, "k", 8), b.linear(x, "v", 8)
    graph = b.graph(b.select_rows(b.attention(q, k, v, Attention(**values))))
    weights = {spec.name: DRAW.standard_normal(spec.shape) for spec in graph.weights}
    return Reference(graph, weights.__getitem__, pages=8, page_tokens=2, dtype=np.float64), weights


def attend(weights, ids, window=None, soft_cap=None, sinks=None) -> np.ndarray:
    """Attention written out with loops over whole sequences."""
    x = weights["table"][ids]
    q, k, v = (x @ weights[name].T for name in "qkv")
    result = np.zeros_like(q)
    for row in range(len(ids)):
        for head in range(4):
            shared = head // 2
            scores = []
            for past in range(row + 1):
                score = 0.5 * q[row, head * 4 :][:4] @ k[past, shared * 4 :][:4]
                if soft_cap is not None:
                    score = soft_cap * math.tanh(score / soft_cap)
                if window is not None and row - past >= window:
                    score = -math.inf
                scores.append(score)
            total = sum(math.exp(score) for score in scores)
            total += 0 if sinks is None else math.exp(sinks[head])
            for past, score in enumerate(scores):
                share = math.exp(score) / total
                result[row, head * 4 :][:4] += share * v[past, shared * 4 :][:4]
    return result


@pytest.mark.parametrize("changes", [{}, {"window": 3}, {"soft_cap": 0.7}, {"sinks": "sinks"}])
def test_attention_is_its_definition(changes) -> None:
    reference, weights = one_attention(**changes)
    ids = [3, 1, 4, 1, 5, 9, 2]
    wanted = attend(weights, ids, **{k: weights.get(v, v) for k, v in changes.items()})
    whole = reference.run(ids, [(0, 7, [5, 0, 6, 2])], range(7))
    np.testing.assert_allclose(whole, wanted, rtol=1e-12)
    first = reference.run(ids[:4], [(0, 4, [5, 0, 6, 2])], range(4))
    then = reference.run(ids[4:], [(4, 3, [5, 0, 6, 2])], range(3))
    np.testing.assert_allclose(np.concatenate([first, then]), wanted, rtol=1e-12)


def test_sequences_of_one_step_do_not_see_each_other() -> None:
    reference, weights = one_attention()
    a, b = [3, 1, 4], [1, 5, 9, 2]
    both = reference.run(a + b, [(0, 3, [0, 1]), (0, 4, [3, 2])], range(7))
    wanted = np.concatenate([attend(weights, a), attend(weights, b)])
    np.testing.assert_allclose(both, wanted, rtol=1e-12)


def test_a_copied_page_continues_like_the_original() -> None:
    reference, weights = one_attention()
    reference.run([3, 1, 4], [(0, 3, [0, 1])], [2])
    reference.copy_page(1, 4)
    reference.run([7], [(3, 1, [0, 1])], [0])  # the original goes its own way
    row = reference.run([9], [(3, 1, [0, 4])], [0])
    np.testing.assert_allclose(row[0], attend(weights, [3, 1, 4, 9])[3], rtol=1e-12)


def test_logits_are_written_where_they_are_wanted() -> None:
    reference, _ = one_attention()
    target = np.zeros((2, 16), np.float32)
    ids = memoryview(np.asarray([3, 1, 4], np.int32))
    pages = memoryview(np.asarray([0, 1], np.int32))
    outputs = memoryview(np.asarray([0, 2], np.int32))
    result = reference.run(ids, [(0, 3, pages)], outputs, memoryview(target))
    np.testing.assert_array_equal(target, result.astype(np.float32))


def test_a_weight_of_the_wrong_shape_is_named() -> None:
    b = Builder()
    graph = b.graph(b.select_rows(b.embed("table", 3, 2)))
    with pytest.raises(ValueError, match=r"'table' has shape \(2, 2\), .* \(3, 2\)"):
        Reference(graph, lambda _name: np.zeros((2, 2)), pages=1)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rope_turns_pairs_by_their_angle(layout) -> None:
    op = Rope(6, 4, (0.5, 0.1), attention_factor=1.5, layout=layout)
    x = DRAW.standard_normal((1, 12))
    turned = rotate(x, op, np.asarray([3])).reshape(2, 6)
    pairs = [(0, 2), (1, 3)] if layout == "half" else [(0, 1), (2, 3)]
    for head, plain in enumerate(x.reshape(2, 6)):
        for (a, b), frequency in zip(pairs, op.frequencies, strict=True):
            turn = 1.5 * complex(math.cos(3 * frequency), math.sin(3 * frequency))
            wanted = complex(plain[a], plain[b]) * turn
            assert complex(turned[head, a], turned[head, b]) == pytest.approx(wanted, rel=1e-6)
        np.testing.assert_array_equal(turned[head, 4:], plain[4:])


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("gelu", lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
        (
            "gelu_tanh",
            lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
        ("relu", lambda x: max(x, 0.0)),
        ("relu2", lambda x: max(x, 0.0) ** 2),
    ],
)
def test_activations_are_their_definitions(kind, function) -> None:
    values = np.asarray([-30.0, -1.5, 0.0, 0.3, 20.0])
    wanted = [function(x) for x in values]
    np.testing.assert_allclose(activate(kind, values), wanted, rtol=1e-12, atol=1e-14)
    assert activate(kind, values.astype(np.float32)).dtype == np.float32


def test_silu_of_a_very_negative_number_is_zero() -> None:
    assert activate("silu", np.asarray([-1e4], np.float32))[0] == 0


def norm_of(make) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    b = Builder()
    graph = b.graph(make(b, b.select_rows(b.embed("table", 5, 6))))
    weights = {spec.name: DRAW.standard_normal(spec.shape) for spec in graph.weights}
    reference = Reference(graph, weights.__getitem__, pages=1, dtype=np.float64)
    return reference.run([4], [(0, 1, [0])], [0])[0], weights, weights["table"][4]


def test_rms_norm_works_per_group() -> None:
    got, weights, x = norm_of(lambda b, x: b.rms_norm(x, "w", 1e-3, offset=1.0, group=3))
    for part in (slice(0, 3), slice(3, 6)):
        wanted = x[part] / math.sqrt(np.mean(x[part] ** 2) + 1e-3) * (weights["w"] + 1)
        np.testing.assert_allclose(got[part], wanted, rtol=1e-12)


def test_layer_norm_centres_and_scales() -> None:
    got, weights, x = norm_of(lambda b, x: b.layer_norm(x, "w", "b", 1e-3))
    wanted = (x - x.mean()) / math.sqrt(x.var() + 1e-3) * weights["w"] + weights["b"]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_scale_and_soft_cap() -> None:
    got, _, x = norm_of(lambda b, x: b.soft_cap(b.scale(x, 3.0), 2.0))
    np.testing.assert_allclose(got, 2 * np.tanh(3 * x / 2), rtol=1e-12)

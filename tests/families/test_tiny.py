"""Families against transformers, on tiny random checkpoints whose outputs are recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.ops import Rope
from edgeserve.graph.reference import Reference
from tests.data import tiny

RECORDED = Path(__file__).parents[1] / "data" / "transformers" / "tiny.npz"
PAGE = 4
PAGES = [7, 2, 5, 1, 9, 3]  # LENGTH / PAGE pages, in no order


@pytest.fixture(scope="module")
def recorded() -> dict[str, np.ndarray]:
    with np.load(RECORDED) as arrays:
        return dict(arrays)


def graph_of(variant: tiny.Variant, max_model_len: int = tiny.LENGTH):
    family = discover.load(variant.model_type)
    checkpoint = tiny.TinyCheckpoint(variant)
    return family.graph(checkpoint, GraphOptions(max_model_len=max_model_len)), checkpoint


def reference_of(variant: tiny.Variant, dtype: type = np.float32) -> Reference:
    graph, checkpoint = graph_of(variant)
    return Reference(graph, checkpoint.dequantise, pages=10, page_tokens=PAGE, dtype=dtype)


@pytest.mark.parametrize("name", tiny.VARIANTS)
def test_logits_are_those_of_transformers(name: str, recorded: dict[str, np.ndarray]) -> None:
    variant = tiny.VARIANTS[name]
    reference = reference_of(variant)
    logits = reference.run(variant.ids(), [(0, tiny.LENGTH, PAGES)], range(tiny.LENGTH))
    wanted = recorded[f"{name}/logits"]
    assert np.abs(logits - wanted).max() <= 2e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("name", tiny.VARIANTS)
def test_rotary_frequencies_are_those_of_transformers(
    name: str, recorded: dict[str, np.ndarray]
) -> None:
    graph, _ = graph_of(tiny.VARIANTS[name])
    rope = next(node.op for node in graph.nodes if isinstance(node.op, Rope))
    np.testing.assert_allclose(rope.frequencies, recorded[f"{name}/frequencies"], rtol=1e-6)
    assert rope.attention_factor == pytest.approx(float(recorded[f"{name}/attention_factor"]))


@pytest.mark.parametrize("name", tiny.VARIANTS)
def test_every_tensor_is_used(name: str) -> None:
    graph, checkpoint = graph_of(tiny.VARIANTS[name])
    shapes = {spec.name: spec.shape for spec in graph.weights}
    assert shapes == {name: tensor.shape for name, tensor in checkpoint.tensors().items()}


@pytest.mark.parametrize("name", ["llama-rope-yarn", "mistral-window", "qwen2", "qwen3-window"])
def test_chunks_and_single_tokens_give_the_logits_of_one_prefill(name: str) -> None:
    variant = tiny.VARIANTS[name]
    ids = variant.ids()
    reference = reference_of(variant, np.float64)
    whole = reference.run(ids, [(0, tiny.LENGTH, PAGES)], range(tiny.LENGTH))
    reference = reference_of(variant, np.float64)
    rows, start = [], 0
    for count in (9, 7, 1, 1, 1, 1, 4):
        span = (start, count, PAGES[: -(-(start + count) // PAGE)])
        rows.append(reference.run(ids[start : start + count], [span], range(count)))
        start += count
    np.testing.assert_allclose(np.concatenate(rows), whole, rtol=1e-10, atol=1e-12)

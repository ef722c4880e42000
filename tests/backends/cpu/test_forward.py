"""The CPU backend end to end on tiny networks: against the NumPy interpreter, and bitwise the same
however a prompt is cut and whoever else is in the step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeserve._native import kernels
from edgeserve._native.cpu import CpuForward
from edgeserve.backends.cpu import CpuBackend
from edgeserve.config import EngineOptions
from edgeserve.errors import BundleError, CheckpointError
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.reference import Reference
from tests.data import tiny

PAGES, PAGE = 24, 16
LENGTH = 60


def options(**changes) -> EngineOptions:
    return EngineOptions(checkpoint="tiny", **{"pin": False, "threads": 2, **changes})


def tiny_graph(name: str):
    checkpoint = tiny.TinyCheckpoint(tiny.VARIANTS[name])
    family = discover.load(checkpoint.model_type)
    return family.graph(checkpoint, GraphOptions(max_model_len=64)), checkpoint


def load(name: str, folder, *, pages=PAGES, **changes) -> CpuForward:
    graph, checkpoint = tiny_graph(name)
    backend, chosen = CpuBackend(), options(**changes)
    layout = backend.pack(graph, checkpoint, chosen, folder, lambda *_: None)
    return backend.load(graph, folder, layout, chosen, pages=pages, page_tokens=PAGE)


def prompt(seed: int = 0, length: int = LENGTH) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 97, length).astype(np.int32)


def logits_of(forward: CpuForward, ids: np.ndarray, chunk: int, pages=(3, 0, 5, 7)) -> np.ndarray:
    """Logits at every position, the prompt cut into chunks."""
    rows = []
    for start in range(0, len(ids), chunk):
        part = ids[start : start + chunk]
        wanted = np.arange(len(part), dtype=np.int32)
        rows.append(forward.run(part, [(start, len(part), pages)], wanted))
    return np.concatenate(rows)


@pytest.mark.parametrize("name", sorted(tiny.VARIANTS))
def test_logits_in_f32_are_those_of_the_interpreter(name, tmp_path):
    graph, checkpoint = tiny_graph(name)
    reference = Reference(graph, checkpoint.dequantise, pages=PAGES, page_tokens=PAGE)
    ids, wanted = prompt(), np.arange(LENGTH, dtype=np.int32)
    expected = reference.run(ids, [(0, LENGTH, (3, 0, 5, 7))], wanted)
    got = load(name, tmp_path, dtype="f32").run(ids, [(0, LENGTH, (3, 0, 5, 7))], wanted)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("isa", kernels.isas())
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_row_is_bitwise_the_same_in_any_chunking(isa, dtype, tmp_path):
    forward = load("mistral-window", tmp_path, dtype=dtype, isa=isa)
    whole = logits_of(forward, prompt(), LENGTH)
    for chunk in (1, 7, 16, 33):
        np.testing.assert_array_equal(logits_of(forward, prompt(), chunk), whole)


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_a_row_is_bitwise_the_same_among_others_and_on_any_number_of_threads(threads, tmp_path):
    name = sorted(tiny.VARIANTS)[0]
    alone = logits_of(load(name, tmp_path, dtype="bf16"), prompt(), LENGTH)
    forward = load(name, tmp_path, dtype="bf16", threads=threads)
    logits_of(forward, prompt()[:40], 40)
    others = [prompt(seed, length) for seed, length in ((1, 5), (2, 18), (3, 1))]
    tables = [(8, 9), (10, 11), (12, 13)]
    ids = np.concatenate([*others[:2], prompt()[40:], others[2]])
    spans = [(0, 5, tables[0]), (0, 18, tables[1]), (40, 20, (3, 0, 5, 7)), (0, 1, tables[2])]
    got = forward.run(ids, spans, np.arange(23, 43, dtype=np.int32))
    np.testing.assert_array_equal(got, alone[40:])


@pytest.mark.parametrize("name", ["mistral-window", sorted(tiny.VARIANTS)[0]])
def test_a_long_row_is_bitwise_the_same_whoever_attends_to_which_part(name, tmp_path):
    ids, table = prompt(length=1100), np.arange(80, dtype=np.int32)
    whole = logits_of(load(name, tmp_path, pages=80, threads=1), ids, 500, table)
    forward = load(name, tmp_path, pages=80, threads=3)
    logits_of(forward, ids[:1090], 1000, table)
    for position in range(1090, 1100):
        span, wanted = (position, 1, table), np.zeros(1, np.int32)
        row = forward.run(ids[position : position + 1], [span], wanted)
        np.testing.assert_array_equal(row[0], whole[position])


def test_a_copied_page_serves_like_the_original(tmp_path):
    forward = load(sorted(tiny.VARIANTS)[0], tmp_path)
    whole = logits_of(forward, prompt(), LENGTH)
    forward.copy_page(0, 20)
    forward.run(prompt(9, 16), [(16, 16, (3, 0))], np.zeros(0, np.int32))  # page 0 changes
    tail = forward.run(prompt()[48:], [(48, 12, (3, 20, 5, 7))], np.arange(12, dtype=np.int32))
    np.testing.assert_array_equal(tail, whole[48:])


def test_only_the_wanted_rows_have_logits(tmp_path):
    forward = load(sorted(tiny.VARIANTS)[0], tmp_path)
    whole = logits_of(forward, prompt(), LENGTH)
    some = forward.run(prompt(), [(0, LENGTH, (3, 0, 5, 7))], np.array([4, 59], np.int32))
    np.testing.assert_array_equal(some, whole[[4, 59]])
    none = forward.run(prompt(), [(0, LENGTH, (3, 0, 5, 7))], np.zeros(0, np.int32))
    assert none.shape == (0, 97)


def test_a_token_outside_the_table_and_a_step_too_large_are_refused(tmp_path):
    forward = load(sorted(tiny.VARIANTS)[0], tmp_path, step_tokens=8)
    wanted = np.zeros(1, np.int32)
    with pytest.raises(RuntimeError, match="token id 97"):
        forward.run(np.array([97], np.int32), [(0, 1, (0,))], wanted)
    with pytest.raises(RuntimeError, match="9 tokens, at most 8"):
        forward.run(np.zeros(9, np.int32), [(0, 9, (0,))], wanted)


def test_a_page_is_as_large_as_the_backend_says():
    graph, _ = tiny_graph(sorted(tiny.VARIANTS)[0])
    kv = graph.kv[0]
    expected = len(graph.kv) * 2 * kv.kv_heads * 16 * PAGE  # heads of 12 take 16
    assert CpuBackend().page_bytes(graph, options(), PAGE) == 2 * expected
    assert CpuBackend().page_bytes(graph, options(dtype="f32"), PAGE) == 4 * expected


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.mlp.up_proj.weight"])
def test_weights_that_are_not_numbers_are_refused(tmp_path, name: str, value: float) -> None:
    graph, checkpoint = tiny_graph("llama-tied")
    checkpoint._weights[name].flat[-1] = value
    with pytest.raises(CheckpointError, match=f"'{name}' holds values that are not finite"):
        CpuBackend().pack(graph, checkpoint, options(), tmp_path, lambda *_: None)


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": 10**12},
        {"offset": -64},
        {"offset": 3},
        {"offset": "0"},
        {"format": [1]},
        {"format": [99, 99, 99, 99]},
        {"shape": [1, 1]},
    ],
)
def test_a_layout_that_no_packer_wrote_is_refused(tmp_path, changes: dict[str, Any]) -> None:
    graph, checkpoint = tiny_graph("llama-tied")
    backend = CpuBackend()
    layout = backend.pack(graph, checkpoint, options(), tmp_path, lambda *_: None)
    layout["tensors"]["model.layers.0.mlp.up_proj.weight"].update(changes)
    with pytest.raises(BundleError, match="build it again"):
        backend.load(graph, tmp_path, layout, options(), pages=PAGES, page_tokens=PAGE)

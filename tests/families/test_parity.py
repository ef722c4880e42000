"""Recomputes the recordings with torch and transformers: `pytest -m parity`, extra [parity]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.reference import Reference
from tests import models
from tests.data import recorded, tiny
from tests.data.transformers import record_models, record_tiny

pytestmark = pytest.mark.parity


def test_tiny_recordings_are_what_transformers_computes() -> None:
    with np.load(record_tiny.FILE) as stored:
        fresh = record_tiny.record_all()
        assert set(fresh) == set(stored)
        for name, values in fresh.items():
            np.testing.assert_allclose(values, stored[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert {name.split("/")[0] for name in fresh} == set(tiny.VARIANTS)


@pytest.fixture(scope="module", params=recorded.MODELS)
def model(request: pytest.FixtureRequest, model_cache: Path):
    """The name of a recording, and transformers' model of the same GGUF."""
    name = request.param
    gguf = models.find_model(recorded.MODELS[name], model_cache).path
    return name, record_models.load_model(gguf)


def test_greedy_recordings_are_what_transformers_computes(model) -> None:
    name, network = model
    for run in recorded.greedy_runs(name):
        margin = record_models.margin(network, run.prompt, run.tokens)
        assert margin == pytest.approx(run.margin, abs=2e-3)  # 0 when a token differs


def test_distributions_are_what_transformers_computes(model) -> None:
    name, network = model
    text = recorded.distributions(name)
    full = record_models.log_probabilities(network, text.ids.tolist())
    assert text.divergence(full) < 1e-5
    assert (full.argmax(axis=1) == text.argmax).all()


def test_logits_of_the_reference_interpreter_are_those_of_transformers(
    model, model_cache: Path
) -> None:
    """float32 on both sides, over a text of 300 tokens and all of the vocabulary."""
    name, network = model
    ids = recorded.distributions(name).ids[:300]
    checkpoint = models.open_model(recorded.MODELS[name], model_cache)
    family = discover.load(checkpoint.model_type)
    graph = family.graph(checkpoint, GraphOptions(max_model_len=1024))
    reference = Reference(graph, checkpoint.dequantise, pages=19)
    ours = reference.run(ids, [(0, 300, range(19))], range(300))
    import torch

    with torch.inference_mode():
        theirs = network(torch.from_numpy(ids.astype(np.int64))[None]).logits[0].numpy()
    assert np.abs(ours - theirs).max() <= 2e-4 * np.abs(theirs).max()

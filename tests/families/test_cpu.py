"""Real models on the CPU backend: float32 gives transformers' greedy texts, 4-bit stays near."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from edgeserve._native.cpu import CpuForward
from edgeserve.backends.cpu import CpuBackend
from edgeserve.config import EngineOptions
from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from tests import models
from tests.data import recorded

PAGE, PAGES = 16, 32
LIMIT = 0.010  # mean KL divergence of the shipped 4-bit form, promised in the README


def load(model: str, cache_dir: Path, folder: Path, dtype: str) -> CpuForward:
    checkpoint = models.open_model(recorded.MODELS[model], cache_dir)
    graph = discover.load(checkpoint.model_type).graph(
        checkpoint, GraphOptions(max_model_len=PAGE * PAGES)
    )
    options, backend = EngineOptions(checkpoint=model, dtype=dtype, pin=False), CpuBackend()
    folder.mkdir()
    layout = backend.pack(graph, checkpoint, options, folder, lambda *_: None)
    forward = backend.load(graph, folder, layout, options, pages=PAGES, page_tokens=PAGE)
    shutil.rmtree(folder)  # some gigabytes, and they are in memory now
    return forward


def run(forward: CpuForward, ids: list[int], start: int, outputs: int) -> np.ndarray:
    """Logits of the last `outputs` tokens."""
    rows = np.arange(len(ids) - outputs, len(ids), dtype=np.int32)
    span = (start, len(ids), np.arange(PAGES, dtype=np.int32))
    return forward.run(np.asarray(ids, np.int32), [span], rows)


@pytest.fixture(scope="module", params=recorded.MODELS)
def networks(request, model_cache, tmp_path_factory):
    """Name, the network at float32 and the network as shipped."""
    folder = tmp_path_factory.mktemp("packed")
    loaded = [load(request.param, model_cache, folder / dtype, dtype) for dtype in ("f32", "auto")]
    return request.param, *loaded


@pytest.mark.works("Greedy texts at `--dtype f32` are those of `transformers`, on two real models")
def test_greedy_texts_at_f32_are_those_of_transformers(networks) -> None:
    """Each recorded token is the most likely one after the tokens before it: by induction the
    greedy texts are equal."""
    name, exact, _ = networks
    for greedy in recorded.greedy_runs(name):
        ids = greedy.prompt + greedy.tokens[:-1]
        chosen = run(exact, ids, 0, len(greedy.tokens)).argmax(axis=1)
        assert chosen.tolist() == greedy.tokens, greedy.message


def test_tokens_one_by_one_are_those_of_the_whole(networks) -> None:
    name, exact, _ = networks
    greedy = recorded.greedy_runs(name)[0]
    tokens = [int(run(exact, greedy.prompt, 0, 1).argmax())]
    while len(tokens) < 16:
        start = len(greedy.prompt) + len(tokens) - 1
        tokens.append(int(run(exact, tokens[-1:], start, 1).argmax()))
    assert tokens == greedy.tokens[:16]


@pytest.mark.works("The 4-bit form stays within a mean KL divergence of 0.010 of float32")
def test_the_shipped_form_stays_near_to_float32(networks, record_property) -> None:
    """Over 300 positions of real text and all of the vocabulary."""
    name, exact, shipped = networks
    text = recorded.distributions(name)
    ids = text.ids[:-1].tolist()
    wanted, got = (run(forward, ids, 0, len(ids)) for forward in (exact, shipped))
    assert text.divergence(wanted) < 1e-5  # float32 is what transformers computes
    divergence = recorded.kl_divergence(wanted, got)
    record_property("kl", divergence)
    print(f"{name}: KL {divergence:.5f}, bound from the recording {text.divergence(got):.5f}")
    assert text.divergence(got) <= divergence + 1e-4
    assert divergence <= LIMIT

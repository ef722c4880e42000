"""Real models in the reference interpreter against recorded outputs of transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeserve.family import discover
from edgeserve.family.contract import GraphOptions
from edgeserve.graph.reference import Reference
from tests import models
from tests.data import recorded

PAGE = 16


def reference_of(name: str, cache_dir: Path) -> Reference:
    checkpoint = models.open_model(name, cache_dir)
    family = discover.load(checkpoint.model_type)
    graph = family.graph(checkpoint, GraphOptions(max_model_len=2048))
    return Reference(graph, checkpoint.dequantise, pages=128, page_tokens=PAGE)


@pytest.fixture(scope="module")
def smollm2(model_cache: Path) -> Reference:
    return reference_of(models.SMOLLM2, model_cache)


def assert_greedy(reference: Reference, runs: list[recorded.GreedyRun]) -> None:
    """Each recorded token is the most likely one after the tokens before it: all runs in one step,
    each a span with its pages. By induction the greedy texts are equal."""
    ids, spans, outputs, page = [], [], [], 0
    for run in runs:
        whole = run.prompt + run.tokens[:-1]
        pages = -(-len(whole) // PAGE)
        outputs += range(len(ids) + len(run.prompt) - 1, len(ids) + len(whole))
        spans.append((0, len(whole), range(page, page + pages)))
        ids += whole
        page += pages
    chosen = reference.run(ids, spans, outputs).argmax(axis=1)
    assert chosen.tolist() == [token for run in runs for token in run.tokens]


def test_recordings_have_clear_margins() -> None:
    for model in recorded.MODELS:
        runs = recorded.greedy_runs(model)
        assert len(runs) == 10
        assert all(len(run.tokens) == 64 and run.margin > 0.02 for run in runs)


def test_greedy_texts_of_smollm2_are_those_of_transformers(smollm2: Reference) -> None:
    assert_greedy(smollm2, recorded.greedy_runs("smollm2")[:2])


def test_distributions_of_smollm2_are_those_of_transformers(smollm2: Reference) -> None:
    text = recorded.distributions("smollm2")
    rows = len(text.ids) - 1
    logits = smollm2.run(text.ids[:-1], [(0, rows, range(rows // PAGE + 1))], range(rows))
    assert text.divergence(logits) < 1e-5  # what the steps of the recording come to
    assert (logits.argmax(axis=1) == text.argmax).mean() == 1.0


@pytest.mark.slow
def test_greedy_texts_of_qwen_are_those_of_transformers(model_cache: Path) -> None:
    assert_greedy(
        reference_of(models.QWEN_CODER, model_cache), recorded.greedy_runs("qwen2.5-coder")
    )


@pytest.mark.parametrize("model", recorded.MODELS)
def test_prompts_are_made_as_they_were_recorded(model: str, model_cache: Path) -> None:
    """Our tokenizer and template, from the GGUF alone."""
    checkpoint = models.open_model(recorded.MODELS[model], model_cache)
    family = discover.load(checkpoint.model_type)
    tokenizer, template = family.tokenizer(checkpoint), family.template(checkpoint)
    assert template is not None
    for run in recorded.greedy_runs(model):
        text = template.render([{"role": "user", "content": run.message}])
        assert tokenizer.encode(text, special=False) == run.prompt


def test_a_shifted_distribution_diverges() -> None:
    """The measure itself: of the recording from itself nothing, from a flat one a lot."""
    text = recorded.distributions("smollm2")
    logits = np.full((len(text.top), 49152), -50.0)
    np.put_along_axis(logits, text.top.astype(np.int64), text.logprobs, axis=1)
    rest = np.log(np.maximum(text.remainder, 1e-12) / (49152 - text.top.shape[1]))
    same = np.where(logits == -50.0, rest[:, None], logits)
    assert abs(text.divergence(same)) < 1e-4
    assert text.divergence(np.zeros_like(logits)) > 1.0

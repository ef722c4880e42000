"""What transformers computed for the real test models, as tests use it (transformers/*.py made it).

The numbers come from the GGUF dequantised to float32, so an implementation that runs the same
weights at float32 must give the same greedy texts; one that rounds weights or activations is judged
by `divergence`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "transformers"
STEPS = 2048  # steps of a recorded log-probability, per unit

# Name of the recording -> name in the product's catalogue of models
MODELS = {
    "smollm2": "smollm2-135m-instruct",
    "qwen2.5-coder": "qwen2.5-coder-0.5b-instruct",
}


@dataclass(frozen=True)
class GreedyRun:
    """One prompt with the 64 tokens that follow it greedily, ends of text ignored."""

    message: str  # the user's turn
    prompt: list[int]  # the whole prompt, template applied
    tokens: list[int]
    margin: float  # smallest lead over the second best logit


@dataclass(frozen=True)
class Distributions:
    """Next-token distributions at 300 positions of a text: row i follows ids[: i + 1]."""

    ids: np.ndarray  # int32 [301]
    top: np.ndarray  # int32 [300, 512]: the most likely tokens, ascending ids
    logprobs: np.ndarray  # float64 [300, 512]: their log-probabilities
    remainder: np.ndarray  # float32 [300]: the mass of all other tokens
    argmax: np.ndarray  # int32 [300]

    def divergence(self, logits: np.ndarray) -> float:
        """Mean KL divergence of a model's distributions from these, from its logits [300, vocab].
        Tokens outside the top are one bin, so this is a lower bound of the divergence: near for
        equal distributions, some percent low for others (see `remainder`). Where all logits of
        float32 weights are at hand (graph/reference.py, a backend at f32), use `kl_divergence`."""
        ours = np.take_along_axis(log_softmax(logits), self.top.astype(np.int64), axis=1)
        inside = np.exp(self.logprobs)
        divergence = (inside * (self.logprobs - ours)).sum(axis=1)
        rest = np.maximum(1.0 - inside.sum(axis=1), 1e-9)
        our_rest = np.maximum(1.0 - np.exp(ours).sum(axis=1), 1e-9)
        return float((divergence + rest * np.log(rest / our_rest)).mean())


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """float64, per row."""
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    result: np.ndarray = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return result


def kl_divergence(reference: np.ndarray, logits: np.ndarray) -> float:
    """Mean KL divergence from the distributions of `reference`, over the whole vocabulary. Both
    are logits [positions, vocab]."""
    wanted = log_softmax(reference)
    return float((np.exp(wanted) * (wanted - log_softmax(logits))).sum(axis=1).mean())


def greedy_runs(model: str) -> list[GreedyRun]:
    """Ten runs of `smollm2` or `qwen2.5-coder`."""
    text = (FOLDER / f"{model}.json").read_text(encoding="utf-8")
    return [GreedyRun(**run) for run in json.loads(text)]


def distributions(model: str) -> Distributions:
    with np.load(FOLDER / f"{model}.npz") as arrays:
        return Distributions(
            ids=arrays["ids"],
            top=arrays["top"],
            logprobs=-arrays["logprobs"].astype(np.float64) / STEPS,
            remainder=arrays["remainder"],
            argmax=arrays["argmax"],
        )

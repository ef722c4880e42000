"""The sampler against exact distributions in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve._native.sampler import Sampler, philox, uniform
from edgeserve.sampling import SamplerSettings

DRAWS = 8000


def edited(logits: np.ndarray, how: SamplerSettings, generated: list[int]) -> np.ndarray:
    """Logits after bias, bad words and penalties; all tokens so far were generated."""
    logits = logits.astype(np.float64)
    for id, value in how.logit_bias:
        logits[id] += value
    for word in how.bad_words:
        if list(word[:-1]) == generated[len(generated) - len(word) + 1 :][: len(word) - 1]:
            logits[word[-1]] = -np.inf
    for id in set(generated):
        positive = logits[id] > 0
        logits[id] *= 1 / how.repetition_penalty if positive else how.repetition_penalty
        logits[id] -= how.frequency_penalty * generated.count(id) + how.presence_penalty
    return logits


def keep_prefix(probabilities: np.ndarray, order: np.ndarray, mass: float) -> np.ndarray:
    """The shortest run of `order` that holds `mass`, renormalised."""
    reached = np.cumsum(probabilities[order])
    kept = order[: int(np.sum(reached < mass * (1 - 1e-12))) + 1]
    result = np.zeros_like(probabilities)
    result[kept] = probabilities[kept]
    return result / result.sum()


def distribution(
    logits: np.ndarray, how: SamplerSettings, generated: list[int] | None = None
) -> np.ndarray:
    logits = edited(logits, how, generated or [])
    ids = np.arange(len(logits))
    scaled = np.exp((logits - logits.max()) / how.temperature)
    p = scaled / scaled.sum()
    if 0 < how.top_k < len(p):
        kept = np.lexsort((ids, -logits))[: how.top_k]
        p = np.where(np.isin(ids, kept), p, 0)
        p /= p.sum()
    if how.typical_p < 1:
        surprise = -np.log(np.where(p > 0, p, 1))
        distance = np.where(p > 0, np.abs(surprise - (p * surprise).sum()), np.inf)
        p = keep_prefix(p, np.lexsort((ids, -p, distance)), how.typical_p)
    if how.top_p < 1:
        p = keep_prefix(p, np.lexsort((ids, -p)), how.top_p)
    if how.min_p > 0:
        p = np.where(p >= how.min_p * p.max() * (1 - 1e-9), p, 0)
        p /= p.sum()
    return p


def chi_square_z(counts: np.ndarray, p: np.ndarray) -> float:
    """How many standard deviations the statistic is above its mean (Wilson-Hilferty)."""
    assert counts[p == 0].sum() == 0, "a token outside the support was drawn"
    order = np.argsort(p)
    expected = p[order] * counts.sum()
    bins = np.searchsorted(np.cumsum(expected), np.arange(20, counts.sum(), 20))
    edges = np.unique(np.concatenate(([0], bins)))
    e = np.add.reduceat(expected, edges)
    c = np.add.reduceat(counts[order], edges)
    freedom = int((e > 0).sum()) - 1
    if freedom == 0:
        return 0.0
    statistic = float((((c - e) ** 2)[e > 0] / e[e > 0]).sum())
    spread = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


FILTERS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6},
    {"temperature": 2.5},
    {"top_k": 7},
    {"top_k": 1},
    {"top_p": 0.8},
    {"top_p": 0.999},
    {"min_p": 0.1},
    {"typical_p": 0.7},
    {"top_k": 20, "top_p": 0.7},
    {"top_k": 20, "min_p": 0.05, "temperature": 1.7},
    {"top_k": 30, "typical_p": 0.8, "top_p": 0.9, "min_p": 0.02},
    {"typical_p": 0.9, "top_p": 0.6},
    {"top_p": 0.9, "min_p": 0.2, "temperature": 1.3},
    {"logit_bias": ((0, 3.0), (1, -100.0)), "top_p": 0.95},
    {"repetition_penalty": 1.5, "frequency_penalty": 0.4, "presence_penalty": 0.3},
    {"bad_words": ((5,), (2, 3, 6), (9, 9, 7)), "temperature": 1.5},
]


@pytest.mark.parametrize("how", FILTERS, ids=lambda how: ",".join(how) or "plain")
def test_draws_follow_the_exact_distribution(how: dict[str, Any]) -> None:
    logits = np.random.default_rng(3).normal(0, 1.5, 200).astype(np.float32)
    logits[:3] = 2.0  # ties
    settings_ = SamplerSettings(**how)
    generated = [4, 4, 8, 2, 3]
    sampler = Sampler(200)
    counts = np.zeros(200)
    for seed in range(DRAWS):
        again = SamplerSettings(**how, seed=seed)
        counts[sampler.choose(logits, again, generated, prompt_length=0)] += 1
    assert abs(chi_square_z(counts, distribution(logits, settings_, generated))) < 4


def test_positions_and_choices_draw_independently() -> None:
    logits = np.zeros(10, np.float32)
    sampler = Sampler(10)
    counts = np.zeros(100)
    for position in range(3000):
        tokens = range(position % 50 + 1)
        how = SamplerSettings(seed=position // 50)
        pair = [sampler.choose(logits, how, tokens, choice=choice) for choice in (0, 1)]
        counts[pair[0] * 10 + pair[1]] += 1
    assert abs(chi_square_z(counts, np.full(100, 0.01))) < 4


LOGITS = st.lists(st.integers(-40, 40).map(lambda value: value / 4), min_size=1, max_size=40)
HOW = st.builds(
    SamplerSettings,
    temperature=st.sampled_from([0.25, 0.7, 1.0, 3.0]),
    top_k=st.sampled_from([0, 0, 1, 3, 10, 100]),
    top_p=st.sampled_from([1.0, 0.31, 0.77, 0.97]),
    min_p=st.sampled_from([0.0, 0.033, 0.27]),
    typical_p=st.sampled_from([1.0, 0.23, 0.83]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    frequency_penalty=st.sampled_from([0.0, 0.7]),
    seed=st.integers(0, 2**64 - 1),
)


@given(LOGITS, HOW, st.lists(st.integers(0, 39), max_size=4))
@settings(max_examples=400, deadline=None)
def test_a_draw_is_in_the_support(
    values: list[float], how: SamplerSettings, generated: list[int]
) -> None:
    logits = np.array(values, np.float32)
    generated = [id % len(values) for id in generated]
    chosen = Sampler(len(values)).choose(logits, how, generated, prompt_length=0)
    assert chosen == Sampler(len(values)).choose(logits, how, generated, prompt_length=0)
    exact = distribution(logits, how, generated)
    # Nearly equal logits after float32 rounding may swap at a cut: an equal neighbour is as good.
    near = np.abs(edited(logits, how, generated) - edited(logits, how, generated)[chosen]) < 1e-4
    assert exact[near].sum() > 0


@given(LOGITS, st.lists(st.integers(0, 39), max_size=6), st.sampled_from([1.0, 1.5]))
@settings(max_examples=300, deadline=None)
def test_greedy_is_the_highest_with_ties_to_the_lowest_id(
    values: list[float], generated: list[int], repetition: float
) -> None:
    how = SamplerSettings(temperature=0.0, repetition_penalty=repetition, top_k=3, top_p=0.1)
    logits = np.array(values, np.float32)
    generated = [id % len(values) for id in generated]
    exact = edited(logits, how, generated).astype(np.float32)
    chosen = Sampler(len(values)).choose(logits, how, generated, prompt_length=0)
    assert abs(exact[chosen] - exact.max()) < 1e-5
    if repetition == 1.0:
        assert chosen == int(np.argmax(logits))


@given(LOGITS.filter(len), st.integers(0, 25))
@settings(max_examples=300, deadline=None)
def test_logprobs_are_the_log_softmax_and_the_best_in_order(values: list[float], top: int) -> None:
    logits = np.array(values, np.float32)
    wide = logits.astype(np.float64)
    exact = wide - wide.max() - np.log(np.exp(wide - wide.max()).sum())
    token, logprob, best = Sampler(len(values)).logprob(logits, len(values) - 1, top)
    assert token == len(values) - 1 and abs(logprob - exact[-1]) < 1e-12
    order = np.lexsort((np.arange(len(values)), -wide))[:top]
    assert [id for id, _ in best] == order.tolist()
    assert np.allclose([value for _, value in best], exact[order], atol=1e-12)


@pytest.mark.parametrize("how", FILTERS[:14], ids=lambda how: ",".join(how) or "plain")
@pytest.mark.parametrize("vocab", [1, 63, 64, 65, 1000, 50_001])
def test_a_draw_inverts_the_distribution_function_by_id(vocab: int, how: dict[str, Any]) -> None:
    logits = np.random.default_rng(vocab).normal(0, 3, vocab).astype(np.float32)
    sampler = Sampler(vocab)
    p = distribution(logits, SamplerSettings(**how))
    for seed in range(15):
        chosen = sampler.choose(logits, SamplerSettings(**how, seed=seed), [0])
        below = p[:chosen].sum()
        assert below - 1e-6 <= uniform(seed, 0, 1) <= below + p[chosen] + 1e-6


def test_philox_known_answers() -> None:
    ones = 0xFFFFFFFF
    assert philox((0,) * 4, (0,) * 2) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((ones,) * 4, (ones,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    assert philox(pi, (0xA4093822, 0x299F31D0)) == (
        0xD16CFE09,
        0x94FDCCEB,
        0x5001E420,
        0x24126EA1,
    )


def test_mask_min_tokens_and_suppressed_ids_forbid() -> None:
    logits = np.arange(70, dtype=np.float32)
    sampler, greedy = Sampler(70), SamplerSettings(temperature=0.0, min_tokens=2)
    assert sampler.choose(logits, greedy, [0], mask=[0b101, 0, 0]) == 2
    assert sampler.choose(logits, greedy, [0], mask=[0b101]) == 2  # ids beyond are refused
    assert sampler.choose(logits, greedy, [0], mask=[0, 1 << 31, 1 << 3]) == 67
    assert sampler.choose(logits, greedy, [0], mask=[0, 0, 0]) == -1
    assert sampler.choose(logits, greedy, [0], end_ids=[69]) == 68
    assert sampler.choose(logits, greedy, [0, 1, 2], prompt_length=1, end_ids=[69]) == 69
    assert sampler.choose(logits, greedy, [0], suppress_ids=[69, 68, 1000]) == 67


def test_bad_words_are_stopped_at_their_last_token() -> None:
    logits = np.arange(10, dtype=np.float32)
    how = SamplerSettings(temperature=0.0, bad_words=((9,), (1, 2, 8), (1000,)))
    assert Sampler(10).choose(logits, how, [1, 2]) == 7
    assert Sampler(10).choose(logits, how, [2]) == 8
    assert Sampler(10).choose(logits, how, [0, 2, 1]) == 8


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("index", [0, 30, 64])
def test_logits_that_are_not_finite_are_a_fault(value: float, index: int) -> None:
    logits = np.zeros(65, np.float32)
    logits[index] = value
    for temperature in (0.0, 1.0):
        with pytest.raises(RuntimeError, match="not finite"):
            Sampler(65).choose(logits, SamplerSettings(temperature=temperature), [0])
    with pytest.raises(RuntimeError, match="not finite"):
        Sampler(65).logprob(logits, 1)


def test_forbidden_logits_and_extremes_are_no_fault() -> None:
    logits = np.full(65, -np.inf, np.float32)
    assert Sampler(65).choose(logits, SamplerSettings(), [0]) == -1
    logits[64] = -3e38
    logits[3] = 3e38
    assert Sampler(65).choose(logits, SamplerSettings(temperature=1e-5), [0]) == 3
    assert Sampler(65).choose(logits, SamplerSettings(temperature=5e-324), [0]) == 3
    hot = {
        Sampler(65).choose(logits, SamplerSettings(temperature=1e308, seed=seed), [0])
        for seed in range(40)
    }
    assert hot <= {3, 64} and 3 in hot
    assert Sampler(65).choose(logits, SamplerSettings(logit_bias=((3, 3e38),)), [0]) == -1


WRONG: list[dict[str, Any]] = [
    {"temperature": -1.0},
    {"temperature": math.nan},
    {"top_k": -1},
    {"top_p": 0.0},
    {"top_p": 1.1},
    {"min_p": math.nan},
    {"typical_p": 0.0},
    {"repetition_penalty": 0.0},
    {"frequency_penalty": math.inf},
    {"logit_bias": ((-1, 0.0),)},
    {"bad_words": ((),)},
    {"min_tokens": -1},
]


@pytest.mark.parametrize("how", WRONG, ids=str)
def test_settings_out_of_range_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Sampler(2).choose(np.zeros(2, np.float32), SamplerSettings(**how), [0])

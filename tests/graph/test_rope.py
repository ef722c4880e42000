"""RoPE scaling: what the recorded values of transformers (tests/families) do not cover."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest

from edgeserve.errors import GraphError
from edgeserve.graph.rope import RopeParameters, rope

BASE = {"max_position_embeddings": 4096, "rope_theta": 10000.0}


def scaled(kind: str, **values):
    return {**BASE, "rope_scaling": {"rope_type": kind, **values}}


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(GraphError, match=r"'spiral' is not known; known: default, dynamic, .*yarn"):
        rope(scaled("spiral"), 8, 4096)


def test_a_missing_number_is_named() -> None:
    with pytest.raises(GraphError, match="'linear' needs a number 'factor'"):
        rope(scaled("linear"), 8, 4096)


def test_a_list_of_the_wrong_length_is_named() -> None:
    config = scaled("longrope", short_factor=[1.0], long_factor=[1.0])
    with pytest.raises(GraphError, match="needs a list 'short_factor' of 4 numbers"):
        rope(config, 8, 4096)


def test_dynamic_scaling_takes_its_length_from_the_server() -> None:
    config = scaled("dynamic", factor=2.0)
    assert rope(config, 8, 4096).frequencies == rope(BASE, 8, 4096).frequencies
    assert rope(config, 8, 8192).frequencies[1] < rope(BASE, 8, 8192).frequencies[1]


def test_longrope_is_long_beyond_the_pretraining_context() -> None:
    config = scaled(
        "longrope",
        short_factor=[1.0] * 4,
        long_factor=[2.0] * 4,
        original_max_position_embeddings=1024,
    )
    plain = np.asarray(rope(BASE, 8, 4096).frequencies)
    np.testing.assert_allclose(rope(config, 8, 1024).frequencies, plain)
    np.testing.assert_allclose(rope(config, 8, 1025).frequencies, plain / 2)


def test_factors_of_a_gguf_divide_the_frequencies() -> None:
    plain = np.asarray(rope(BASE, 8, 4096).frequencies)
    config = scaled("factors", factors=[1.0, 2.0, 4.0, 8.0])
    np.testing.assert_allclose(rope(config, 8, 4096).frequencies, plain / [1, 2, 4, 8])


def test_part_of_a_head_may_turn() -> None:
    half = rope({**BASE, "partial_rotary_factor": 0.5}, 16, 4096)
    assert (half.head_dim, half.rotary_dim, len(half.frequencies)) == (16, 8, 4)


def test_parameters_may_be_given_for_each_kind_of_layer() -> None:
    config = {
        **BASE,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        },
    }
    full = rope(config, 4, 4096, layer_type="full_attention")
    sliding = rope(config, 4, 4096, layer_type="sliding_attention")
    np.testing.assert_allclose(full.frequencies, [0.5, 0.05])
    np.testing.assert_allclose(sliding.frequencies, [1.0, 50**-0.5])


@pytest.mark.parametrize(
    ("config", "context"),
    [
        (BASE, 4096),
        (scaled("linear", factor=4.0), 16384),
        (scaled("dynamic", factor=2.0), 8192),
        (scaled("yarn", factor=4.0), 16384),
        (scaled("yarn", factor=4.0, original_max_position_embeddings=1024), 4096),
        (scaled("llama3", factor=8.0, original_max_position_embeddings=512), 4096),
    ],
)
def test_the_context_is_the_scaled_one(config, context: int) -> None:
    assert RopeParameters.from_config(config, 8).scaled_context() == context


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**BASE, "rope_scaling": "yarn"}, "'rope_scaling' in config.json must be an object"),
        ({"rope_theta": "10000"}, "'rope_theta' in config.json must be a number above 0"),
        ({"rope_theta": -1.0}, "'rope_theta' in config.json must be a number above 0"),
        ({"max_position_embeddings": 0}, "'max_position_embeddings' in config.json must be"),
    ],
)
def test_a_wrong_config_is_one_sentence(config, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        rope(config, 8, 4096)


@pytest.mark.parametrize("kind", ["linear", "dynamic", "llama3", "yarn", "longrope"])
@pytest.mark.parametrize("value", [math.inf, math.nan, -1.0, 0, 10**400, 1e308, "8", [8], True])
def test_numbers_that_make_no_embedding_are_refused(kind: str, value) -> None:
    good = {
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
        "beta_fast": 32,
        "beta_slow": 1,
        "short_factor": [1.0] * 4,
        "long_factor": [1.0] * 4,
    }
    for name in good:
        for changed in (value, [value] * 4):
            config = scaled(kind, **{**good, name: changed})
            # What a kind does not read does no harm; what it reads is used or refused.
            with suppress(GraphError):
                RopeParameters.from_config(config, 8).scaled_context()
                assert np.isfinite(rope(config, 8, 4096).frequencies).all()
    for name in ("rope_theta", "max_position_embeddings"):
        with suppress(GraphError):
            RopeParameters.from_config({**BASE, name: value}, 8).scaled_context()
            assert np.isfinite(rope({**BASE, name: value}, 8, 4096).frequencies).all()


def test_a_context_without_end_is_refused() -> None:
    with pytest.raises(GraphError, match=r"makes the context .* over the limit of 2147483647"):
        RopeParameters.from_config(scaled("linear", factor=1e9), 8).scaled_context()


def test_an_odd_head_is_refused() -> None:
    with pytest.raises(GraphError, match="21 columns of a head are odd"):
        rope(BASE, 21, 4096)

"""What a caller may ask of sampling, and which source decides when several speak."""

from __future__ import annotations

import math

import pytest

from edgeserve.errors import InvalidRequest
from edgeserve.sampling import SamplerDefaults, SamplerSettings, SamplingParams, resolve

OPENAI = SamplerSettings(seed=0)


@pytest.mark.parametrize(
    ("name", "good", "wrong"),
    [
        ("temperature", [0, 0.0, 5e-324, 1, 2.0], [-0.1, 2.01, math.nan, math.inf, True, "1"]),
        ("top_p", [1e-9, 1], [0, 1.1, -1, math.nan, False]),
        ("top_k", [-1, 0, 1, 2**31 - 1], [-2, 2**31, 1.0, True, "5"]),
        ("min_p", [0, 0.5, 1], [-0.1, 1.1]),
        ("typical_p", [0.1, 1], [0, 1.1]),
        ("repetition_penalty", [0.1, 1, 2], [0, -1]),
        ("frequency_penalty", [-2, 2], [-2.1, 2.1]),
        ("presence_penalty", [-2, 2], [-2.1, 2.1]),
        ("seed", [0, 2**64 - 1, -1, -(2**63)], [2**64, -(2**63) - 1, 1.5, True]),
        ("n", [1, 128], [0, 129, -1, 1.0, True]),
        ("max_tokens", [1, 10**15], [0, -1, 16.0, True, "16"]),
        ("max_completion_tokens", [1], [0, -1, 16.5]),
        ("min_tokens", [0, 5], [-1, 0.5]),
        ("logprobs", [0, 50, True, False], [51, -1, "yes"]),
        ("num_logprobs", [0, 50], [51, -1]),
        ("prompt_logprobs", [0, 50], [51, -1]),
        ("stop", ["x", ["x", "y"], [], ""], [[1], 5, {"x": 1}, ["\ud800"], "\udfff"]),
        ("stop_token_ids", [[], [1, 2]], [[-1], ["a"], 3, [True]]),
        ("logit_bias", [{}, {1: 5}, {"1": -100}], [{"a": 1}, {-1: 1}, {1: 101}, {1: None}, [1]]),
        ("bad_words", [[], ["x"]], ["x", [1]]),
        ("ignore_eos", [True, False], [1, "true"]),
        ("reuse_context", [True, False], [0, "no"]),
        ("enable_thinking", [True, False], [1]),
        ("reasoning_effort", ["", "low"], [1]),
        ("thinking_budget", [0, 5], [-1, 0.5, True]),
        ("chat_template_kwargs", [{}, {"a": 1}], [[], "x"]),
    ],
)
def test_every_value_in_range_is_taken_and_every_other_is_refused_by_name(
    name: str, good: list[object], wrong: list[object]
) -> None:
    for value in good:
        SamplingParams(**{name: value})  # type: ignore[arg-type]
    for value in wrong:
        with pytest.raises(InvalidRequest) as caught:
            SamplingParams(**{name: value})  # type: ignore[arg-type]
        assert caught.value.param == name, value
        assert caught.value.status == 400


def test_stop_strings_that_would_cost_the_engine_much_are_refused() -> None:
    for good in (["x" * 32 * 1024], ["x" * 32] * 1024):
        SamplingParams(stop=good)
    for wrong in (["x" * 32 * 1024, "y"], ["x"] * 1025):
        with pytest.raises(InvalidRequest, match="at most 1024 strings") as caught:
            SamplingParams(stop=wrong)
        assert caught.value.param == "stop"


def test_a_bias_on_too_many_tokens_is_refused() -> None:
    SamplingParams(logit_bias=dict.fromkeys(range(1024), 1.0))
    with pytest.raises(InvalidRequest, match="1024"):
        SamplingParams(logit_bias=dict.fromkeys(range(1025), 1.0))


def test_two_names_for_the_limit_must_agree() -> None:
    assert SamplingParams(max_tokens=5, max_completion_tokens=5).token_limit == 5
    assert SamplingParams(max_completion_tokens=5).token_limit == 5
    with pytest.raises(InvalidRequest, match=r"5.*6"):
        SamplingParams(max_tokens=5, max_completion_tokens=6)


def test_more_minimum_than_maximum_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        SamplingParams(max_tokens=2, min_tokens=3)
    assert caught.value.param == "min_tokens"


def test_what_the_text_must_follow_is_told_in_objects_or_as_a_pair() -> None:
    pair = SamplingParams(guided_decoding=("regex", "a*"))
    assert pair.surfaces == SamplingParams(guided_decoding={"regex": "a*"}).surfaces
    assert SamplingParams(guided_decoding=None).surfaces == {}
    for name in ("response_format", "guided_decoding", "structured_outputs"):
        with pytest.raises(InvalidRequest) as caught:
            SamplingParams(**{name: "regex"})
        assert caught.value.param == name


@pytest.mark.parametrize(
    ("wish", "alternatives"),
    [
        ({}, None),
        ({"logprobs": False}, None),
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": 3}, 3),
        ({"logprobs": 0}, 0),
        ({"logprobs": 4}, 4),
        ({"num_logprobs": 0}, None),
        ({"num_logprobs": 4}, 4),
    ],
)
def test_logprobs_are_wished_for_in_three_ways(
    wish: dict[str, int], alternatives: int | None
) -> None:
    assert SamplingParams(**wish).alternatives == alternatives  # type: ignore[arg-type]


def test_top_logprobs_alone_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        SamplingParams(top_logprobs=2)
    assert caught.value.param == "top_logprobs"


def test_nothing_said_means_the_defaults_of_openai() -> None:
    settings = resolve(SamplingParams(seed=0))
    assert settings == OPENAI
    assert (settings.temperature, settings.top_p, settings.top_k) == (1.0, 1.0, 0)


def test_request_beats_server_beats_family_beats_generation_config() -> None:
    sources = [
        SamplerDefaults(temperature=0.1),
        SamplerDefaults(temperature=0.2, top_p=0.2),
        SamplerDefaults(temperature=0.3, top_p=0.3, top_k=3),
    ]
    chosen = resolve(SamplingParams(seed=0), *sources)
    assert (chosen.temperature, chosen.top_p, chosen.top_k) == (0.1, 0.2, 3)
    chosen = resolve(SamplingParams(seed=0, temperature=0, top_k=0), *sources)
    assert (chosen.temperature, chosen.top_p, chosen.top_k) == (0.0, 0.2, 0)


@pytest.mark.parametrize("off", [0, -1])
def test_both_ways_to_switch_top_k_off_are_the_same(off: int) -> None:
    default = SamplerDefaults(top_k=50)
    assert resolve(SamplingParams(top_k=off), generation_config=default).top_k == 0


def test_whole_numbers_become_floats_for_the_wire() -> None:
    settings = resolve(SamplingParams(temperature=1, top_p=1, logit_bias={"3": 2}))
    assert isinstance(settings.temperature, float)
    assert settings.logit_bias == ((3, 2.0),)
    assert isinstance(settings.logit_bias[0][1], float)


def test_an_unset_seed_is_fresh_and_a_set_one_is_kept() -> None:
    seeds = {resolve(SamplingParams()).seed for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert resolve(SamplingParams(seed=7)).seed == 7
    assert resolve(SamplingParams(seed=-1)).seed == 2**64 - 1


@pytest.mark.parametrize(
    ("config", "temperature", "top_k", "penalty"),
    [
        ({"temperature": 0.6, "top_k": 20}, 0.6, 20, 1.0),  # do_sample left out: values count
        ({"do_sample": True, "temperature": 0.6, "top_k": 20}, 0.6, 20, 1.0),
        ({"do_sample": False, "temperature": 0.6, "top_k": 20}, 0.0, 0, 1.0),
        ({"do_sample": False, "repetition_penalty": 1.1}, 0.0, 0, 1.1),
        ({"temperature": 7.5, "top_k": None, "top_p": "x"}, 1.0, 0, 1.0),  # no opinion
        ({"eos_token_id": 2}, 1.0, 0, 1.0),
    ],
)
def test_generation_config_is_read_as_its_author_meant_it(
    config: dict[str, object], temperature: float, top_k: int, penalty: float
) -> None:
    defaults = SamplerDefaults.from_generation_config(config)
    settings = resolve(SamplingParams(seed=0), generation_config=defaults)
    assert (settings.temperature, settings.top_k) == (temperature, top_k)
    assert settings.repetition_penalty == penalty

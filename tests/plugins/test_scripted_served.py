"""The scripted family in the real engine: the script is said whatever happens around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeserve import LLM, SamplingParams
from edgeserve.errors import EdgeserveError

TEXT = "The quick brown fox jumps over the lazy dog. "


@pytest.fixture(scope="module")
def llm(scripted_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLM]:
    cache = tmp_path_factory.mktemp("cache")
    options = {"threads": 1, "pin": False, "max_kv_cache_capacity": 512, "max_batch_size": 4}
    with LLM(str(scripted_checkpoint), cache_dir=cache, kv_pool_pages=40, **options) as llm:
        yield llm


def said(llm: LLM, text: str, **params) -> list[str]:
    return [answer.text for answer in llm.generate(text, SamplingParams(**params))]


def test_all_choices_say_the_script_at_any_temperature(llm: LLM) -> None:
    assert (
        said(llm, "script:hello", n=3, temperature=2.0) == ["Hello! How can I help you today?"] * 3
    )


def test_preempted_choices_go_on_with_their_scripts(llm: LLM) -> None:
    """Four texts of 300 tokens need 80 pages, and there are 40."""
    answers = llm.generate(
        [f"tokens=300 say:{number} {TEXT}" for number in range(4)], SamplingParams(max_tokens=400)
    )
    wanted = [(f"{number} {TEXT}" * 10)[:300] for number in range(4)]
    assert [answer.text for answer in answers] == wanted
    assert llm.get_scheduling_metrics().preemptions > 0


def test_a_failing_hook_ends_its_request_alone(llm: LLM) -> None:
    with pytest.raises(EdgeserveError, match="hook of family 'scripted' failed"):
        said(llm, "script:fail")
    assert said(llm, "say:still here") == ["still here"]


def test_a_free_script_draws_from_the_network(llm: LLM) -> None:
    first, again, other = (
        said(llm, "script:free", seed=seed, max_tokens=20, ignore_eos=True) for seed in (1, 1, 2)
    )
    assert first == again != other

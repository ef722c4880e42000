"""`LLM` over a real model: what is sampled depends on the request alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeserve import LLM, SamplingParams
from edgeserve.checkpoint.resolve import Resolved

PARAMS = SamplingParams(seed=11, max_tokens=12)
PROMPTS = [f"Write a sentence about the number {number}." for number in range(4)]


@pytest.fixture(scope="module")
def llm(default_model: Resolved, model_cache: Path) -> Iterator[LLM]:
    with LLM(str(default_model.path), cache_dir=model_cache, max_kv_cache_capacity=256) as llm:
        yield llm


@pytest.fixture(scope="module")
def alone(llm: LLM) -> list[list[int]]:
    """What each prompt gets when nothing else runs and nothing is cached."""
    params = SamplingParams(seed=11, max_tokens=12, reuse_context=False)
    return [llm.chat(prompt, params).token_ids for prompt in PROMPTS]


def test_in_one_call_each_prompt_gets_what_it_gets_alone(llm: LLM, alone: list[list[int]]) -> None:
    assert [output.token_ids for output in llm.generate(PROMPTS, PARAMS)] == alone


def test_from_several_threads_each_call_gets_what_it_gets_alone(
    llm: LLM, alone: list[list[int]]
) -> None:
    got: dict[int, list[int]] = {}

    def ask(number: int) -> None:
        stream = llm.generate_stream(PROMPTS[number], PARAMS)
        got[number] = [token for delta in stream for token in delta.token_ids]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(PROMPTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [got[number] for number in range(len(PROMPTS))] == alone


def test_a_hit_in_the_context_cache_changes_nothing(llm: LLM, alone: list[list[int]]) -> None:
    first = llm.chat(PROMPTS[0], PARAMS)
    second = llm.chat(PROMPTS[0], PARAMS)
    assert second.cached_tokens > 0
    assert first.token_ids == second.token_ids == alone[0]

"""The sampling and template fields in the Python API, over the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeserve import LLM, SamplingParams
from edgeserve.errors import InvalidRequest, UnsupportedFeature


@pytest.fixture(scope="module")
def llm(scripted_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLM]:
    cache = tmp_path_factory.mktemp("cache")
    with LLM(str(scripted_checkpoint), cache_dir=cache, threads=1, pin=False) as llm:
        yield llm


def said(llm: LLM, text: str, **fields: Any) -> str:
    return llm.chat(text, SamplingParams(seed=1, **fields)).text


def test_biases_and_bad_words(llm: LLM) -> None:
    assert said(llm, "script:free", logit_bias={65: 100}, max_tokens=3) == "AAA"
    assert said(llm, "script:free", logit_bias={"65": 100}, max_tokens=3) == "AAA"
    assert "cat" not in said(llm, "say:the cat", bad_words=["cat"])
    with pytest.raises(InvalidRequest, match="288"):
        said(llm, "say:x", logit_bias={288: 1})


def test_ends(llm: LLM) -> None:
    assert said(llm, "say:abc", stop_token_ids=[98]) == "a"
    assert said(llm, "say:abc", stop="b", include_stop_str_in_output=True) == "ab"
    assert len(llm.chat("say:a", SamplingParams(min_tokens=7)).token_ids) >= 7
    with pytest.raises(InvalidRequest, match="min_tokens"):
        llm.complete("say:a", SamplingParams(min_tokens=17))


def test_special_tokens_are_shown_when_asked_for(llm: LLM) -> None:
    assert said(llm, "say:a<|image|>b") == "ab"
    assert said(llm, "say:a<|image|>b", skip_special_tokens=False) == "a<|image|>b"


def test_penalties_change_a_greedy_answer(llm: LLM) -> None:
    greedy = {"temperature": 0, "max_tokens": 30}
    plain = said(llm, "script:free", **greedy)
    for penalty in ("frequency_penalty", "presence_penalty", "repetition_penalty"):
        assert said(llm, "script:free", **greedy, **{penalty: 2}) != plain


def test_best_of_keeps_the_likeliest(llm: LLM) -> None:
    params = {"seed": 3, "max_tokens": 6, "ignore_eos": True}
    every = llm.generate("script:free", SamplingParams(n=5, logprobs=0, **params))
    means = {output.text: sum(one[0].logprob for one in output.logprobs or ()) for output in every}
    best = llm.generate("script:free", SamplingParams(n=2, best_of=5, **params))
    assert [output.text for output in best] == sorted(means, key=lambda text: -means[text])[:2]
    assert [(output.index, output.logprobs) for output in best] == [(0, None), (1, None)]
    with pytest.raises(InvalidRequest, match="whole"):
        llm.generate_stream("script:free", SamplingParams(best_of=2))


def test_the_last_message_is_continued(llm: LLM) -> None:
    messages = [{"role": "user", "content": "say:more"}, {"role": "assistant", "content": "OK "}]
    assert llm.chat(messages, continue_final_message=True).text == "more"
    stream = llm.generate_stream(messages, continue_final_message=True)
    assert "".join(delta.text for delta in stream) == "more"
    with pytest.raises(InvalidRequest, match="exclude"):
        llm.chat(messages, continue_final_message=True, add_generation_prompt=True)


def test_what_the_template_is_asked_for(llm: LLM) -> None:
    opened, closed = (
        llm.chat("say:x", add_generation_prompt=opens).prompt_tokens for opens in (True, False)
    )
    assert opened > closed
    raw = [{"role": "user", "content": "<|im_start|>user\nsay:raw<|im_end|>\n"}]
    assert llm.chat(raw, apply_chat_template=False).text == "raw"
    with pytest.raises(InvalidRequest, match="leaves out"):
        llm.chat(raw, apply_chat_template=False, documents=[{"text": "a"}])
    with pytest.raises(UnsupportedFeature, match="documents"):
        llm.chat("say:x", documents=[{"text": "a"}])
    with pytest.raises(InvalidRequest, match="'messages'"):
        llm.chat("say:x", SamplingParams(chat_template_kwargs={"messages": []}))

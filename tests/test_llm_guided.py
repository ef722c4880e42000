"""Structured output of a real model from Python: what ends by itself validates, greedy or hot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgeserve import LLM, SamplingParams
from edgeserve.checkpoint.resolve import Resolved
from edgeserve.errors import InvalidRequest

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 16},
        "people": {"type": "integer", "minimum": 0},
        "rivers": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 2},
        "kind": {"enum": ["old", "new"]},
    },
    "required": ["city", "people", "rivers", "kind"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
ASK = "Describe Paris as JSON."


@pytest.fixture(scope="module")
def llm(default_model: Resolved, model_cache: Path) -> Iterator[LLM]:
    with LLM(str(default_model.path), cache_dir=model_cache, max_kv_cache_capacity=512) as llm:
        yield llm


@pytest.mark.works("`SamplingParams(response_format=...)` and `guided_decoding` from Python")
def test_a_schema_is_followed_cold_and_hot(llm: LLM) -> None:
    ended = 0
    for temperature in (0.0, 2.0):
        params = SamplingParams(
            response_format=FORMAT, temperature=temperature, seed=2, n=3, max_tokens=120
        )
        for output in llm.generate(ASK, params):
            if output.finish_reason == "stop":
                jsonschema.validate(json.loads(output.text), SCHEMA)
                ended += 1
    assert ended >= 3


def test_tokens_are_the_same_alone_and_among_free_ones(llm: LLM) -> None:
    params = SamplingParams(
        guided_decoding=("regex", "[A-Z][a-z]{3,9}(, [A-Z][a-z]{3,9}){2}"), seed=5
    )
    alone = llm.chat(ASK, params)
    free = SamplingParams(max_tokens=12, seed=1)
    streams = [llm.generate_stream(f"Write about {i}.", free) for i in range(3)]
    among = llm.chat(ASK, params)
    assert all(list(stream) for stream in streams)
    assert among.token_ids == alone.token_ids
    assert re.fullmatch("[A-Z][a-z]{3,9}(, [A-Z][a-z]{3,9}){2}", alone.text)


def test_forced_text_is_not_computed_token_by_token(llm: LLM) -> None:
    guide = {"json_schema": SCHEMA, "jump_forward": True}
    output = llm.chat(ASK, SamplingParams(guided_decoding=guide, temperature=0, max_tokens=120))
    jsonschema.validate(json.loads(output.text), SCHEMA)


def test_a_stream_gives_the_same_text(llm: LLM) -> None:
    params = SamplingParams(guided_decoding={"choice": ["left", "right"]}, seed=4)
    text = "".join(delta.text for delta in llm.generate_stream(ASK, params))
    assert text == llm.chat(ASK, params).text
    assert text in ("left", "right")


def test_what_cannot_be_followed_is_named(llm: LLM) -> None:
    with pytest.raises(InvalidRequest) as caught:
        llm.chat(ASK, SamplingParams(guided_decoding=("regex", "(")))
    assert caught.value.param == "guided_decoding.regex"

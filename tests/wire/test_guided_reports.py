"""Public reports of servers like this one about structured output (schemas they refused, texts that
never ended or were no JSON), asked of this one through the front door."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.wire.test_guided import CHAT, PERSON, TREE, body, choices, is_valid, schema_format

THROUGH_PATHS = {
    "type": "object",
    "properties": {
        "tree": {
            "type": "object",
            "properties": {
                "left": {
                    "anyOf": [{"type": "null"}, {"$ref": "#/properties/tree/properties/right"}]
                },
                "right": {"type": "array", "items": {"enum": [1, "x"]}, "maxItems": 2},
            },
            "required": ["left", "right"],
            "additionalProperties": False,
        }
    },
    "required": ["tree"],
    "additionalProperties": False,
}
ANNOTATED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A title",
    "description": "words",
    "type": "object",
    "properties": {
        "a": {"type": "integer", "default": 3, "examples": [1], "x-foo": {"y": 1}},
        "b": {"type": "boolean", "deprecated": True, "$comment": "none"},
    },
    "required": ["a", "b"],
    "additionalProperties": {"not": {}},
}
BOUNDS = {
    "type": "object",
    "properties": {
        "in": {
            "type": "object",
            "properties": {
                "s": {"type": "string", "pattern": "^[a-z]{1,6}$"},
                "t": {"type": "string", "pattern": "\\S", "maxLength": 5},
                "u": {"type": "string", "maxLength": 20000},
                "v": {"type": "array", "items": {"type": "null"}, "maxItems": 5000},
            },
            "required": ["s", "t", "u", "v"],
            "additionalProperties": False,
        }
    },
    "required": ["in"],
    "additionalProperties": False,
}
NUMBERS = {
    "type": "object",
    "properties": {"n": {"type": "number"}, "i": {"type": "integer"}},
    "required": ["n", "i"],
    "additionalProperties": False,
}
LONG_STRING = {
    "type": "object",
    "properties": {"s": {"type": "string", "minLength": 40, "maxLength": 60}},
    "required": ["s"],
    "additionalProperties": False,
}
CLOSE = {"125": 4, "93": 3, "34": 3}  # braces and quotes, so that texts come to their end

REPORTS = {
    "027 references in items": (TREE, {}),
    "027 references through paths": (THROUGH_PATHS, {}),
    "029 words that only annotate": (ANNOTATED, {}),
    "031 the empty schema": ({}, {"logit_bias": CLOSE}),
    "031 numbers": (NUMBERS, {}),
    "031 numbers that like digits": (NUMBERS, {"logit_bias": {str(48 + i): 20 for i in range(10)}}),
    "033 bounds and patterns": (BOUNDS, {"logit_bias": CLOSE}),
    "037 control characters": (LONG_STRING, {"temperature": 2, "n": 8}),
    "037 control characters, wished for": (LONG_STRING, {"logit_bias": {"10": 50, "9": 50}}),
}


@pytest.mark.parametrize("report", REPORTS)
def test_what_others_got_wrong(http: httpx.Client, report: str) -> None:
    schema, wishes = REPORTS[report]
    answer = http.post(
        CHAT, json=body(schema_format(schema), **{"n": 4, "max_tokens": 900, **wishes})
    )
    ended = [text for text, reason in choices(answer) if reason == "stop"]
    assert ended, answer.text[:500]
    assert all(is_valid(text, schema) for text in ended)


def test_035_thirty_at_once_among_free_ones(http: httpx.Client) -> None:
    def ask(number: int) -> tuple[int, str, str]:
        wish = schema_format(PERSON) if number % 3 else {}
        asked = body(wish, seed=number, temperature=number % 2, max_tokens=150)
        if not number % 3:
            asked["messages"] = [{"role": "user", "content": f"say:number {number}"}]
        ((text, reason),) = choices(http.post(CHAT, json=asked))
        return number, text, reason

    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(ask, range(30)))
    for number, text, reason in answers:
        if number % 3 == 0:
            assert text == f"number {number}"
        elif reason == "stop":
            assert is_valid(text, PERSON)
    assert sum(reason == "stop" for _, _, reason in answers) > 15


def test_the_grammar_begins_after_the_thoughts(http: httpx.Client) -> None:
    said = "say:<think>\n{ not yet\n</think>" + json.dumps({"name": "x", "age": 1, "tags": []})
    for wish in (schema_format(PERSON), {"guided_decoding": {"json_schema": PERSON}}):
        asked: dict[str, Any] = body(wish, enable_thinking=True, temperature=0)
        asked["messages"] = [{"role": "user", "content": said}]
        (choice,) = http.post(CHAT, json=asked).json()["choices"]
        assert "not yet" in choice["message"]["reasoning_content"]
        assert choice["finish_reason"] == "stop"
        assert is_valid(choice["message"]["content"], PERSON)


def test_thoughts_that_never_end_are_no_answer(http: httpx.Client) -> None:
    asked: dict[str, Any] = body(schema_format(PERSON), enable_thinking=True, max_tokens=40)
    asked["messages"] = [{"role": "user", "content": "say:<think>hm"}]
    (choice,) = http.post(CHAT, json=asked).json()["choices"]
    assert choice["finish_reason"] == "length"

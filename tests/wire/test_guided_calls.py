"""Calls that must come: `tool_choice` required and named, by grammar, through the front door."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import pytest

CHAT = "/v1/chat/completions"
SCHEMAS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 8},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
    "list": {"type": "object", "properties": {}, "additionalProperties": False},
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}
    for name, schema in SCHEMAS.items()
]
NAMED = {"type": "function", "function": {"name": "list"}}


def body(choice: Any, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "script:free"}]
    asked = {"messages": said, "tools": TOOLS, "tool_choice": choice, "seed": 3}
    return {**asked, "max_tokens": 500, "n": 4, **more}


def calls(answer: httpx.Response) -> list[list[tuple[str, Any]]]:
    """The calls of each choice that came to its end; all of them checked."""
    assert answer.status_code == 200, answer.text
    found = []
    for choice in answer.json()["choices"]:
        if choice["finish_reason"] == "length":
            continue
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] is None
        made = [one["function"] for one in choice["message"]["tool_calls"]]
        found.append([(one["name"], json.loads(one["arguments"])) for one in made])
        for name, arguments in found[-1]:
            jsonschema.validate(arguments, SCHEMAS[name])
    assert found
    return found


@pytest.mark.works("`tool_choice` required and named are enforced, arguments by their schema")
def test_a_call_is_made_when_one_is_required(http: httpx.Client) -> None:
    made = calls(http.post(CHAT, json=body("required")))
    assert all(made)


def test_one_call_when_calls_in_parallel_are_not_wanted(http: httpx.Client) -> None:
    made = calls(http.post(CHAT, json=body("required", parallel_tool_calls=False)))
    assert all(len(one) == 1 for one in made)


@pytest.mark.parametrize("choice", [NAMED, "list"])
def test_the_named_tool_is_called_once(http: httpx.Client, choice: Any) -> None:
    made = calls(http.post(CHAT, json=body(choice)))
    assert made == [[("list", {})]] * 4


def test_calls_stream_as_they_are_whole(http: httpx.Client) -> None:
    asked = body("required", n=1)
    whole = http.post(CHAT, json=asked)
    text, names = "", []
    for frame in http.post(CHAT, json={**asked, "stream": True}).text.split("\n\n"):
        if not frame.startswith("data: {"):
            continue
        for choice in json.loads(frame.removeprefix("data: "))["choices"]:
            assert not choice["delta"].get("content")
            for call in choice["delta"].get("tool_calls", ()):
                names += [call["function"]["name"]] if "name" in call["function"] else []
                text += call["function"]["arguments"]
    told = [one["function"] for one in whole.json()["choices"][0]["message"]["tool_calls"]]
    assert names == [one["name"] for one in told]
    assert text == "".join(one["arguments"] for one in told)


def test_a_strict_tool_that_cannot_be_enforced_is_named(http: httpx.Client) -> None:
    asked = body("required")
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    function = {"name": "bad", "parameters": schema, "strict": True}
    asked["tools"] = [*TOOLS, {"type": "function", "function": function}]
    error = http.post(CHAT, json=asked).json()["error"]
    assert error["param"] == "tools[2].function.parameters"
    assert "uniqueItems" in error["message"]
    function["strict"] = False
    schema["properties"] = {"a\r\nX-Evil: é": {"type": "array", "uniqueItems": True}}
    relaxed = http.post(CHAT, json={**asked, "max_tokens": 3})
    assert relaxed.status_code == 200
    assert relaxed.headers["X-Edgeserve-Relaxed"].startswith("bad: not enforced: uniqueItems at")
    assert "X-Evil" not in relaxed.headers
    assert "X-Edgeserve-Relaxed" not in http.post(CHAT, json=body("list", n=1)).headers

"""The budget of reasoning, streamed and whole, alone and before a text that follows a grammar."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.wire.folding import events
from tests.wire.test_guided import PERSON, is_valid, schema_format
from tests.wire.test_tools import CHAT, both

THOUGHTS = "The sky is blue because of the air."
CLOSING = 4  # a line break, the tag and two more, a token each


def inside(said: str) -> list[dict[str, str]]:
    """A conversation whose prompt ends inside reasoning."""
    return [
        {"role": "user", "content": f"say:{said}"},
        {"role": "assistant", "content": "<think>\n"},
    ]


def reasoning_tokens(answer: dict[str, Any]) -> int:
    return int(answer["usage"]["completion_tokens_details"]["reasoning_tokens"])


@pytest.mark.works("`thinking_budget` closes reasoning, and the answer goes on with content")
@pytest.mark.parametrize("budget", [0, 1, 7, 20])
def test_a_budget_closes_reasoning(http: httpx.Client, budget: int) -> None:
    said = f"<think>{THOUGHTS} {THOUGHTS}"
    answer = both(http, said, tools=None, enable_thinking=True, thinking_budget=budget)
    assert answer["reasoning"] == THOUGHTS[:budget].strip()
    # What is said goes on behind the tokens that were put in.
    assert answer["text"] == f"{THOUGHTS} {THOUGHTS}"[budget + CLOSING :].lstrip()
    assert (answer["finish"], reasoning_tokens(answer)) == ("stop", budget + CLOSING)


def test_a_budget_that_is_not_reached_changes_nothing(http: httpx.Client) -> None:
    said = f"<think>{THOUGHTS}</think>Yes."
    free = both(http, said, tools=None, enable_thinking=True)
    assert both(http, said, tools=None, enable_thinking=True, thinking_budget=100) == free
    assert (free["reasoning"], free["text"]) == (THOUGHTS, "Yes.")
    assert reasoning_tokens(free) == len(THOUGHTS) + 1


def test_each_choice_has_the_budget(http: httpx.Client) -> None:
    sent = {
        "messages": inside(THOUGHTS),
        "continue_final_message": True,
        "thinking_budget": 5,
        "n": 3,
    }
    answer = http.post(CHAT, json=sent).json()
    assert [one["message"]["reasoning_content"] for one in answer["choices"]] == ["The s"] * 3
    details = answer["usage"]["completion_tokens_details"]
    assert details["reasoning_tokens"] == 3 * (5 + CLOSING)


def test_a_stream_counts_reasoning_as_it_comes(http: httpx.Client) -> None:
    sent: dict[str, Any] = {
        "messages": inside(THOUGHTS),
        "continue_final_message": True,
        "thinking_budget": 6,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    usages = [event["usage"] for event in events(http.post(CHAT, json=sent))]
    counts = [usage["completion_tokens_details"]["reasoning_tokens"] for usage in usages]
    assert counts == sorted(counts) and counts[-1] == 6 + CLOSING


@pytest.mark.parametrize("budget", [None, 0, 9])
def test_a_grammar_begins_where_the_budget_ends(http: httpx.Client, budget: int | None) -> None:
    said = f"{THOUGHTS}</think>" if budget is None else THOUGHTS
    sent = {"thinking_budget": budget, "temperature": 0, "continue_final_message": True}
    answer = both(
        http, "", tools=None, messages=inside(said), **sent, **schema_format(PERSON), max_tokens=400
    )
    assert answer["reasoning"] == (THOUGHTS if budget is None else THOUGHTS[:budget].strip())
    assert answer["finish"] == "length" or is_valid(answer["text"], PERSON)
    assert answer["text"].startswith("{")
    expected = len(THOUGHTS) + 1 if budget is None else budget + CLOSING
    assert reasoning_tokens(answer) == expected


def test_a_stop_string_does_not_end_thoughts(http: httpx.Client) -> None:
    said = f"<think>{THOUGHTS}</think>It is blue."
    answer = both(http, said, tools=None, enable_thinking=True, stop="blue")
    assert (answer["reasoning"], answer["text"]) == (THOUGHTS, "It is ")
    assert answer["finish"] == "stop"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "invalid_value"),
        ({"enable_thinking": False}, "invalid_value"),
        ({"apply_chat_template": False}, "invalid_value"),
        ({"enable_thinking": True, **schema_format(PERSON)}, "unsupported_feature"),
    ],
)
def test_a_budget_needs_reasoning(http: httpx.Client, fields: dict[str, Any], code: str) -> None:
    """And reasoning that the template opens, when a grammar comes after it."""
    sent = {"messages": [{"role": "user", "content": "say:x"}], "thinking_budget": 5, **fields}
    answer = http.post(CHAT, json=sent)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, "thinking_budget", code)
    assert "think" in error["message"]


def test_a_completion_has_no_budget(http: httpx.Client) -> None:
    answer = http.post("/v1/completions", json={"prompt": "say:x", "thinking_budget": 5})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "thinking_budget")

"""Tools, choices of them, and calls in the history: what is accepted, and how the rest is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve.errors import InvalidRequest
from edgeserve.pipeline.call import Chat
from edgeserve.protocol.openai.chat import chat_call, read_chat

USER = {"role": "user", "content": "hi"}


def tool(name: str, **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def asked(name: str, arguments: Any = "{}", id: str = "call_1") -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def allowed(*tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": list(tools)}}


def chat(*messages: dict[str, Any], **fields: Any) -> Chat:
    body = {"messages": list(messages) or [USER], **fields}
    (prompt,) = chat_call(read_chat(json.dumps(body).encode())).prompts
    assert isinstance(prompt, Chat)
    return prompt


def refused(*messages: dict[str, Any], **fields: Any) -> tuple[str | None, str]:
    with pytest.raises(InvalidRequest) as caught:
        chat(*messages, **fields)
    assert caught.value.status == 400
    return caught.value.param, caught.value.code


B_NAMED = {"type": "function", "function": {"name": "b"}}
A, B = tool("a", parameters={"type": "object", "x-kept": 1}), tool("b")


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["a", "b"]),
        ("auto", ["a", "b"]),
        ("required", ["a", "b"]),
        ("none", []),
        ("b", ["b"]),
        ({"type": "function", "function": {"name": "b"}}, ["b"]),
        ({"type": "function", "name": "a"}, ["a"]),
        (allowed(B_NAMED), ["b"]),
        (allowed(), []),
    ],
)
def test_a_choice_says_what_is_offered(choice: Any, names: list[str]) -> None:
    offered = chat(tools=[A, B], tool_choice=choice).tools or ()
    assert [one["function"]["name"] for one in offered] == names


def test_tools_reach_the_template_as_they_were_sent() -> None:
    assert chat(tools=[A]).tools == (A,)
    assert chat(tools=[]).tools is None
    assert chat(tools=[], tool_choice="none").tools is None


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"tools": {}}, "tools", "invalid_type"),
        ({"tools": [1]}, "tools[0]", "invalid_type"),
        ({"tools": [A, B, A]}, "tools[2].function.name", "invalid_value"),
        ({"tools": [{"type": "function"}]}, "tools[0].function", "missing_required_parameter"),
        ({"tools": [{"type": "function", "function": 1}]}, "tools[0].function", "invalid_type"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "unsupported_feature"),
        ({"tools": [tool("")]}, "tools[0].function.name", "invalid_value"),
        ({"tools": [tool("no spaces")]}, "tools[0].function.name", "invalid_value"),
        ({"tools": [tool("a", strict="yes")]}, "tools[0].function.strict", "invalid_type"),
        ({"tools": [tool("a", parameters=[])]}, "tools[0].function.parameters", "invalid_type"),
        (
            {"tools": [tool("a", parameters={"type": "string"})]},
            "tools[0].function.parameters.type",
            "invalid_value",
        ),
        (
            {"tools": [tool("a", parameters={"properties": [1]})]},
            "tools[0].function.parameters.properties",
            "invalid_type",
        ),
        (
            {"tools": [tool("a", parameters={"properties": {"x": "string"}})]},
            "tools[0].function.parameters.properties.x",
            "invalid_type",
        ),
        (
            {"tools": [tool("a", parameters={"required": [1]})]},
            "tools[0].function.parameters.required[0]",
            "invalid_type",
        ),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"tools": [A], "tool_choice": "c"}, "tool_choice", "invalid_value"),
        ({"tools": [A], "tool_choice": {"type": "function"}}, "tool_choice", "invalid_value"),
        ({"tools": [A], "tool_choice": {"type": "x"}}, "tool_choice.type", "unsupported_feature"),
        ({"tools": [A], "tool_choice": allowed(B_NAMED)}, "tool_choice", "invalid_value"),
        ({"tools": [A], "tool_choice": allowed(1)}, "tool_choice", "invalid_value"),
        ({"tools": [A], "tool_choice": 1}, "tool_choice", "invalid_type"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls", "invalid_type"),
        ({"functions": [{"name": "a"}]}, "functions", "unsupported_feature"),
        ({"function_call": {"name": "a"}}, "function_call", "unsupported_feature"),
        ({"tools": [A], "apply_chat_template": False}, "tools", "invalid_value"),
    ],
)
def test_wrong_tools_are_named(fields: dict[str, Any], param: str, code: str) -> None:
    assert refused(**fields) == (param, code)


def test_calls_and_results_reach_the_template() -> None:
    answer = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "18"}]}
    messages = chat(USER, asked("a", '{"city": "Oslo"}'), answer).messages
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "a", "arguments": {"city": "Oslo"}},
                }
            ],
        },
        {"role": "tool", "content": "18", "tool_call_id": "call_1", "name": "a"},
    ]


@pytest.mark.parametrize("arguments", ["", " ", None, "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    (call,) = chat(USER, asked("a", arguments)).messages[1]["tool_calls"]
    assert call["function"]["arguments"] == {}


def test_the_older_names_become_the_newer() -> None:
    older = {"role": "assistant", "function_call": {"name": "a", "arguments": '{"x": 1}'}}
    first, second = ({"role": "function", "name": "a", "content": text} for text in "12")
    messages = chat(USER, older, first, older, second).messages
    ids = [messages[i]["tool_calls"][0]["id"] for i in (1, 3)]
    assert len(set(ids)) == 2
    assert [messages[i]["tool_call_id"] for i in (2, 4)] == ids
    assert messages[2]["role"] == "tool"


def test_reasoning_goes_to_the_template_under_one_name() -> None:
    for name in ("reasoning_content", "reasoning"):
        message = {"role": "assistant", "content": "4", name: "2 and 2"}
        assert chat(USER, message, USER).messages[1]["reasoning_content"] == "2 and 2"
    odd = {"role": "assistant", "content": "4", "reasoning": {"effort": "low"}}
    assert "reasoning_content" not in chat(USER, odd, USER).messages[1]


def test_fields_that_an_answer_has_are_taken_back() -> None:
    """Clients send the messages of answers back with everything in them (bug bank 025)."""
    echoed = {
        "role": "assistant",
        "content": "hello",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
        "reasoning_content": None,
        "provider_specific_fields": {"a": 1},
    }
    assert chat(USER, echoed, USER).messages[1] == {"role": "assistant", "content": "hello"}


@pytest.mark.parametrize(
    ("messages", "param", "code"),
    [
        (
            [USER, {"role": "tool", "content": "x", "tool_call_id": "call_9"}],
            "messages[1].tool_call_id",
            "invalid_value",
        ),
        (  # the call comes later
            [{"role": "tool", "content": "x", "tool_call_id": "call_1"}, asked("a")],
            "messages[0].tool_call_id",
            "invalid_value",
        ),
        (
            [asked("a"), {"role": "tool", "content": "x", "tool_call_id": 1}],
            "messages[1].tool_call_id",
            "invalid_type",
        ),
        (
            [asked("a"), {"role": "tool", "tool_call_id": "call_1"}],
            "messages[1].content",
            "missing_required_parameter",
        ),
        ([asked("a", "{")], "messages[0].tool_calls[0].function.arguments", "invalid_value"),
        ([asked("a", "[1]")], "messages[0].tool_calls[0].function.arguments", "invalid_value"),
        (
            [asked("a", '{"x":NaN}')],
            "messages[0].tool_calls[0].function.arguments",
            "invalid_value",
        ),
        ([asked("a", 5)], "messages[0].tool_calls[0].function.arguments", "invalid_type"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "a"}}]}],
            "messages[0].tool_calls[0].id",
            "missing_required_parameter",
        ),
        ([{"role": "assistant", "tool_calls": "a"}], "messages[0].tool_calls", "invalid_type"),
        (
            [{"role": "assistant", "function_call": {"name": "a", "arguments": "{"}}],
            "messages[0].function_call.arguments",
            "invalid_value",
        ),
        (
            [USER, {"role": "function", "name": "a", "content": "x"}],
            "messages[1].name",
            "invalid_value",
        ),
    ],
)
def test_wrong_histories_are_named(messages: list[dict[str, Any]], param: str, code: str) -> None:
    assert refused(*messages) == (param, code)


def test_parallel_calls_are_a_wish() -> None:
    for value, wanted in ((None, True), (True, True), (False, False)):
        body = {"messages": [USER], "parallel_tool_calls": value}
        assert chat_call(read_chat(json.dumps(body).encode())).parallel_tool_calls is wanted


WORDS = ("type", "function", "name", "id", "arguments", "parameters", "properties", "required")
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(0, 1), st.text(max_size=5),
    st.sampled_from(["function", "a", "{}", "allowed_tools", "object"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*WORDS, "allowed_tools", "tools"]), inner, max_size=4),
    ),
    max_leaves=12,
)
WRONG = st.sampled_from(["tool_calls", "function_call", "tool_call_id", "name", "reasoning"])


@settings(max_examples=200, deadline=None)
@given(
    tools=VALUES,
    choice=VALUES,
    role=st.sampled_from(["assistant", "tool", "function", "user"]),
    message=st.dictionaries(WRONG, VALUES, max_size=3),
)
def test_any_value_is_taken_or_refused(
    tools: Any, choice: Any, role: str, message: dict[str, Any]
) -> None:
    body = {
        "messages": [asked("a"), {"role": role, "content": "x", **message}],
        "tools": tools,
        "tool_choice": choice,
    }
    try:
        chat_call(read_chat(json.dumps(body).encode()))
    except InvalidRequest as error:
        assert error.status == 400 and error.param

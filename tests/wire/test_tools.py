"""Tool calls and reasoning through the front door, streamed and whole."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import openai
import pytest

from tests.wire.folding import events, folded, told

CHAT = "/v1/chat/completions"


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


WEATHER = tool("get_weather", city={"type": "string"})
TABLES = {"type": "function", "function": {"name": "list_tables"}}
TOOLS = [WEATHER, TABLES]


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


OSLO = '{"city": "Oslo"}'
CALL = call("get_weather", OSLO)


def body(said: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"say:{said}"}]
    return {"messages": messages, "tools": TOOLS, "seed": 1, **fields}


def both(http: httpx.Client, said: str, **fields: Any) -> dict[str, Any]:
    """The first choice, the same streamed and whole."""
    sent = body(said, **fields)
    whole = http.post(CHAT, json=sent)
    assert whole.status_code == 200, whole.text
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    streamed = folded(http.post(CHAT, json={**sent, **usage}))
    whole_told = told(whole)
    for one in (streamed, whole_told):
        one["usage"].pop("prompt_tokens_details")
    assert streamed == whole_told
    choice: dict[str, Any] = whole_told["choices"][0]
    return {
        **choice,
        "usage": whole_told["usage"],
        "message": whole.json()["choices"][0]["message"],
    }


# What is a call ----------------------------------------------------------------------------------


@pytest.mark.works("Tool calls of the `openai` client: streamed, by its `.stream()` helper, whole")
@pytest.mark.parametrize(
    "choice",
    ["auto", "required", "get_weather", {"type": "function", "function": {"name": "get_weather"}}],
)
def test_the_client_gets_calls(client: openai.OpenAI, model: str, choice: Any) -> None:
    """Bug bank 013, 015, 019, 021."""
    sent = body(CALL + "\n" + call("get_weather", '{"city": "Rome"}'), tool_choice=choice)
    sent["model"] = model
    whole = client.chat.completions.create(**sent).choices[0]
    assert whole.finish_reason == "tool_calls" and whole.message.content is None
    chunks = list(client.chat.completions.create(**sent, stream=True))
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    parts = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or []]
    assert len(parts) > 6, "arguments come as they are made"
    cities = ["Oslo", "Rome"] if choice in ("auto", "required") else ["Oslo"]  # named: one call
    assert [part.index for part in parts if part.id] == list(range(len(cities)))
    with client.chat.completions.stream(**sent) as stream:
        helped = stream.get_final_completion().choices[0]
    assert helped.finish_reason == "tool_calls" and helped.message.content is None
    ids = set()
    for message in (whole.message, helped.message):
        called = message.tool_calls or []
        assert [json.loads(one.function.arguments)["city"] for one in called] == cities
        assert {(one.type, one.function.name) for one in called} == {("function", "get_weather")}
        ids |= {one.id for one in called}
    assert len(ids) == 2 * len(cities), "ids are unique over calls and answers"


@pytest.mark.parametrize(
    "said",
    [
        call("list_tables", "{}"),
        '<tool_call>\n{"name": "list_tables"}\n</tool_call>',
        call("list_tables", "null"),
        call("list_tables", '""'),
    ],
)
def test_a_call_without_arguments_has_an_empty_object(http: httpx.Client, said: str) -> None:
    """Bug bank 017."""
    answer = both(http, said)
    assert answer["calls"] == [{"name": "list_tables", "arguments": "{}"}]
    assert answer["finish"] == "tool_calls"


@pytest.mark.parametrize(
    "said",
    [
        call("delete_everything", "{}"),
        "<tool_call>\nnot JSON\n</tool_call>",
        '<tool_call>\n{"name": "get_weather"',
        "The tag <tool_call> begins a call.",
        '{"city": "Oslo"} is JSON.',
    ],
)
def test_what_is_no_call_of_a_known_tool_stays_content(http: httpx.Client, said: str) -> None:
    answer = both(http, said)
    assert (answer["text"], answer["calls"], answer["finish"]) == (said, [], "stop")


def test_text_stands_beside_calls(http: httpx.Client) -> None:
    answer = both(http, f"Let me see.\n{CALL}")
    assert answer["text"].strip() == "Let me see."
    assert answer["calls"] == [{"name": "get_weather", "arguments": OSLO}]


def test_choices_have_calls_of_their_own(http: httpx.Client) -> None:
    sent = body(CALL, n=3)
    whole = told(http.post(CHAT, json=sent))["choices"]
    streamed = folded(http.post(CHAT, json={**sent, "stream": True}))["choices"]
    assert whole == streamed and len(whole) == 3
    assert {one["calls"][0]["arguments"] for one in whole.values()} == {OSLO}


# Choosing ----------------------------------------------------------------------------------------


def test_without_tools_a_call_is_text(http: httpx.Client) -> None:
    for fields in ({"tools": None}, {"tool_choice": "none"}):
        answer = both(http, CALL, **fields)
        assert (answer["text"], answer["calls"], answer["finish"]) == (CALL, [], "stop")


def test_a_named_tool_is_the_only_one(http: httpx.Client) -> None:
    answer = both(http, CALL, tool_choice="list_tables", max_tokens=300)
    assert answer["text"] == ""
    assert {call["name"] for call in answer["calls"]} == {"list_tables"}


def test_without_parallel_calls_the_first_one_is_told(http: httpx.Client) -> None:
    said = f"{CALL}\n{call('list_tables', '{}')}"
    assert len(both(http, said)["calls"]) == 2
    answer = both(http, said, parallel_tool_calls=False)
    assert answer["calls"] == [{"name": "get_weather", "arguments": OSLO}]
    assert answer["finish"] == "tool_calls"


def test_tools_count_as_prompt(http: httpx.Client) -> None:
    messages = [{"role": "user", "content": "say:x"}]
    counted = http.post("/tokenize", json={"messages": messages, "tools": TOOLS}).json()["count"]
    assert counted == both(http, "x")["usage"]["prompt_tokens"]
    assert counted > http.post("/tokenize", json={"messages": messages}).json()["count"] + 50


# Ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", ["<tool_cal", "<tool_call>", '<tool_call>\n{"nam', "<think"])
def test_a_stop_string_loses_nothing_that_was_held_back(http: httpx.Client, held: str) -> None:
    """Bug bank 007."""
    answer = both(http, f"Well {held}STOP and more", stop="STOP")
    assert (answer["text"], answer["calls"], answer["finish"]) == (f"Well {held}", [], "stop")


def test_a_limit_in_a_call_is_told_as_such(http: httpx.Client) -> None:
    answer = both(http, CALL, max_tokens=50)
    (cut,) = answer["calls"]
    assert answer["finish"] == "length"
    assert OSLO.startswith(cut["arguments"]) and cut["arguments"] not in ("", OSLO)
    before = both(http, CALL, max_tokens=12)
    assert (before["text"], before["calls"], before["finish"]) == (CALL[:22], [], "length")


def test_tools_do_not_turn_streaming_off(http: httpx.Client) -> None:
    """Bug bank 023."""
    sent = body("", stream=True)
    sent["messages"][0]["content"] = "delay_ms=4 say:" + "Some text that is no call. " * 4
    with http.stream("POST", CHAT, json=sent) as answer:
        times = [time.monotonic() for line in answer.iter_lines() if '"content":"' in line]
    assert len(times) > 10
    assert times[-1] - times[0] > 0.1


# Reasoning ---------------------------------------------------------------------------------------


@pytest.mark.works("Reasoning in a field of its own, counted in usage; calls after it")
def test_thoughts_and_then_a_call(http: httpx.Client) -> None:
    answer = both(http, f"<think>\nWhere is Oslo?\n</think>\n\n{CALL}", enable_thinking=True)
    assert answer["reasoning"] == "Where is Oslo?"
    assert answer["calls"] == [{"name": "get_weather", "arguments": OSLO}]
    assert answer["message"]["content"] is None and answer["finish"] == "tool_calls"
    thoughts = len("\nWhere is Oslo?\n") + 2  # the two tags are one token each
    details = answer["usage"]["completion_tokens_details"]
    assert thoughts - 1 <= details["reasoning_tokens"] <= thoughts


def test_thoughts_and_then_content(http: httpx.Client) -> None:
    said = "<think>\nTwo and two.\n</think>\n\nIt is 4."
    answer = both(http, said, tools=None, enable_thinking=True)
    assert (answer["reasoning"], answer["text"]) == ("Two and two.", "It is 4.")
    assert answer["finish"] == "stop"


def test_a_call_inside_thoughts_is_a_thought(http: httpx.Client) -> None:
    answer = both(http, f"<think>{CALL}</think>Done.", enable_thinking=True)
    assert (answer["reasoning"], answer["calls"], answer["text"]) == (CALL, [], "Done.")


def test_thinking_is_off_unless_asked(http: httpx.Client) -> None:
    """The template writes an empty thought then, and an effort alone asks for none."""
    messages = [{"role": "user", "content": "say:x"}]

    def count(**fields: Any) -> int:
        answer = http.post("/tokenize", json={"messages": messages, **fields})
        return int(answer.json()["count"])

    off, on = count(), count(enable_thinking=True)
    assert off > on
    assert count(reasoning_effort="high") == on
    assert count(reasoning_effort="minimal") == count(reasoning_effort="none") == off
    assert count(reasoning_effort="high", enable_thinking=False) == off


# History -----------------------------------------------------------------------------------------


@pytest.mark.works(
    "A whole tool conversation: call, result, answer; answers are taken back as sent"
)
def test_an_agent_calls_and_answers(client: openai.OpenAI, model: str) -> None:
    """Bug bank 025: messages go back with every field that the client has for them."""
    messages: list[Any] = [{"role": "user", "content": "script:agent"}]
    first = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    message = first.choices[0].message
    (called,) = message.tool_calls
    more = {"reasoning_content": "hm", "reasoning": None, "provider_specific_fields": {"a": [1]}}
    messages.append({**message.model_dump(), **more})
    messages.append({"role": "tool", "tool_call_id": called.id, "content": "sunny"})
    second = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    assert second.choices[0].message.content == "It is sunny in Paris."
    messages.append(second.choices[0].message.model_dump())
    messages.append({"role": "user", "content": "say:Thanks"})
    assert client.chat.completions.create(model=model, messages=messages).choices[0]


def test_a_result_of_no_call_is_refused(http: httpx.Client) -> None:
    sent = body("x")
    sent["messages"].append({"role": "tool", "tool_call_id": "call_x", "content": "1"})
    answer = http.post(CHAT, json=sent)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages[1].tool_call_id"


# Logprobs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [CALL, f"Well.\n{CALL}", f"<think>Hm.</think>{CALL}"])
def test_logprobs_list_every_token(http: httpx.Client, said: str) -> None:
    answer = both(http, said, logprobs=True, top_logprobs=1, enable_thinking=True)
    raw = bytes(byte for one in answer["logprobs"] for byte in one["bytes"])
    assert raw.decode() == said
    assert len(answer["logprobs"]) == answer["usage"]["completion_tokens"] - 1


def test_frames_of_calls(http: httpx.Client) -> None:
    """Exactly what OpenAI sends: content null first, then id and name, then arguments."""
    frames = events(http.post(CHAT, json=body(CALL, stream=True)))
    deltas = [frame["choices"][0]["delta"] for frame in frames]
    assert deltas[0] == {"role": "assistant", "content": None}
    first = deltas[1]["tool_calls"][0]
    assert first.pop("id").startswith("call_")
    function = {"name": "get_weather", "arguments": ""}
    assert first == {"index": 0, "type": "function", "function": function}
    for delta in deltas[2:-1]:
        (part,) = delta["tool_calls"]
        assert set(part) == {"index", "function"} and set(part["function"]) == {"arguments"}
    assert deltas[-1] == {} and frames[-1]["choices"][0]["finish_reason"] == "tool_calls"

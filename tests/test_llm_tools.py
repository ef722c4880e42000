"""`LLM` with tools and reasoning: outputs, streams, names of parsers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeserve import LLM, SamplingParams
from edgeserve.errors import InvalidRequest, NoTemplate
from edgeserve.pipeline.calls import whole_calls

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
ARGUMENTS = '{"city": "Paris"}'
CALL = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
THINK = SamplingParams(enable_thinking=True)


@pytest.fixture(scope="module")
def llm(scripted_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLM]:
    options: dict[str, Any] = {"threads": 1, "pin": False, "max_kv_cache_capacity": 1024}
    cache = tmp_path_factory.mktemp("cache")
    with LLM(str(scripted_checkpoint), cache_dir=cache, **options) as llm:
        yield llm


def without_ids(calls: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    assert all(call["id"].startswith("call_") for call in calls or [])
    return [{key: call[key] for key in ("type", "function")} for call in calls or []]


CALLED = [{"type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}]


def test_calls_and_reasoning_of_an_output(llm: LLM) -> None:
    said = f"say:<think>Hm.</think>{CALL}"
    output = llm.chat(said, THINK, tools=[WEATHER], reasoning_parser="qwen3")
    assert (output.text, output.reasoning, output.finish_reason) == ("", "Hm.", "tool_calls")
    assert without_ids(output.tool_calls) == CALLED


def test_reasoning_stays_in_the_text_unless_a_parser_is_named(llm: LLM) -> None:
    output = llm.chat("say:<think>Hm.</think>Yes.", THINK)
    assert (output.text, output.reasoning) == ("<think>Hm.</think>Yes.", None)
    for name in ("qwen3", "auto", "deepseek-r1"):
        output = llm.chat("say:<think>Hm.</think>Yes.", THINK, reasoning_parser=name)
        assert (output.text, output.reasoning, output.tool_calls) == ("Yes.", "Hm.", None)


@pytest.mark.parametrize("parser", ["none", "qwen3"])
def test_a_budget_closes_reasoning(llm: LLM, parser: str) -> None:
    """Also where the thoughts stay in the text."""
    params = SamplingParams(enable_thinking=True, thinking_budget=3)
    output = llm.chat("say:<think>abcdefghij", params, reasoning_parser=parser)
    told = ("hij", "abc") if parser == "qwen3" else ("<think>abc\n</think>\n\nhij", None)
    assert (output.text, output.reasoning, output.finish_reason) == (*told, "stop")
    deltas = list(llm.generate_stream("say:<think>abcdefghij", params, reasoning_parser=parser))
    assert "".join(delta.text for delta in deltas) == output.text
    assert "".join(delta.reasoning for delta in deltas) == (output.reasoning or "")


@pytest.mark.parametrize(
    ("prompt", "thinks"), [("say:x", False), ([1, 2, 3], True), ([1, 2, 3], False)]
)
def test_a_budget_without_reasoning_is_refused(
    llm: LLM, prompt: str | list[int], thinks: bool
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        llm.generate(prompt, SamplingParams(enable_thinking=thinks, thinking_budget=3))
    assert caught.value.param == "thinking_budget"


def test_a_stream_has_parts_of_calls(llm: LLM) -> None:
    said = f"say:<think>Hm.</think>{CALL}"
    deltas = list(llm.generate_stream(said, THINK, tools=[WEATHER], reasoning_parser="auto"))
    assert "".join(delta.text for delta in deltas) == ""
    assert "".join(delta.reasoning for delta in deltas) == "Hm."
    parts = [part for delta in deltas for part in delta.tool_calls or []]
    assert len(parts) > 3 and "id" in parts[0]
    assert without_ids(whole_calls(parts)) == CALLED
    assert deltas[-1].finish_reason == "tool_calls"
    count = sum(len(delta.token_ids) for delta in deltas)
    assert count == len(llm.chat(said, THINK).token_ids), "each token is told once"


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({}, 1),
        ({"tool_choice": "required"}, 1),
        ({"tool_choice": "get_weather"}, 1),
        ({"tool_parser": "hermes"}, 1),
        ({"tool_parser": "generic"}, 1),
        ({"tool_choice": "none"}, 0),
        ({"tool_parser": "none"}, 0),
        ({"tool_parser": "pythonic"}, 0),
    ],
)
def test_choice_and_parser(llm: LLM, options: dict[str, Any], calls: int) -> None:
    output = llm.generate(f"say:{CALL}", tools=[WEATHER], **options)[0]
    assert len(output.tool_calls or []) == calls
    assert output.text == ("" if calls else CALL)
    assert output.finish_reason == ("tool_calls" if calls else "stop")


def test_one_call_when_they_may_not_be_parallel(llm: LLM) -> None:
    said = f"say:{CALL}\n{CALL}"
    for parallel, calls in ((True, 2), (False, 1)):
        output = llm.chat(said, tools=[WEATHER], parallel_tool_calls=parallel)
        assert len(output.tool_calls or []) == calls


def test_a_conversation_with_results(llm: LLM) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "script:agent"}]
    first = llm.chat(messages, tools=[WEATHER])
    messages.append({"role": "assistant", "tool_calls": first.tool_calls})
    messages.append({"role": "tool", "tool_call_id": first.tool_calls[0]["id"], "content": "sun"})
    assert llm.chat(messages, tools=[WEATHER]).text == "It is sunny in Paris."


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [WEATHER], "tool_parser": "unheard_of"}, "tool_parser"),
        ({"reasoning_parser": "unheard_of"}, "reasoning_parser"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [WEATHER], "tool_choice": "other"}, "tool_choice"),
        ({"tools": [WEATHER], "apply_chat_template": False}, "tools"),
    ],
)
def test_what_is_wrong_is_named(llm: LLM, options: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        llm.generate("say:x", **options)
    assert caught.value.param == param


def test_tools_need_a_template(scripted_plugin: Path, tmp_path: Path) -> None:
    del scripted_plugin
    from edgeserve_scripted import write_checkpoint

    folder = write_checkpoint(tmp_path / "plain", chat_template=None)
    with LLM(str(folder), cache_dir=tmp_path / "cache", threads=1, pin=False) as llm:
        with pytest.raises(NoTemplate):
            llm.generate("say:x", tools=[WEATHER])
        with pytest.raises(InvalidRequest, match="token ids"):
            llm.generate([1, 2], tools=[WEATHER])

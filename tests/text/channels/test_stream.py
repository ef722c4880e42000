"""When deltas come: text is withheld only while it can become markup, arguments stream."""

from __future__ import annotations

import json

import pytest

from edgeserve.generation import Finish, Piece
from edgeserve.text.channels import (
    CallArguments,
    CallEnd,
    CallStart,
    Channels,
    Content,
    Delta,
    End,
    Parsers,
    Reasoning,
    tool_schemas,
)
from tests.text.channels.folding import IDS
from tests.text.channels.sample import OSLO, TOOLS, hermes, xml


def stage(tool: str = "hermes", think: str = "none", prompt: str = "") -> Channels:
    parsers = Parsers(tool, think, IDS.get)
    return parsers.channels(prompt=prompt, tools=TOOLS, new_id=lambda: "call_1")


def feed(channels: Channels, text: str) -> list[Delta]:
    return channels.feed(Piece(0, text))


@pytest.mark.parametrize(
    ("tool", "parts", "given"),
    [
        ("hermes", ["Hi ", "<tool", " box>"], ["Hi ", "", "<tool box>"]),
        ("hermes", ["a<b", "<", "<"], ["a<b", "", "<"]),
        ("hermes", ["<tool_call>", "\n", "x"], ["", "", "<tool_call>\nx"]),
        ("hermes", ['<tool_call>{"na', "x"], ["", '<tool_call>{"nax']),
        (
            "hermes",
            ['<tool_call>{"name": "get_', "x", "y"],
            ["", '<tool_call>{"name": "get_x', "y"],
        ),
        ("qwen3_xml", ["<function=get", "_x", "y"], ["", "<function=get_x", "y"]),
        ("mistral", ["[TOOL_CALLS]get", "x"], ["", "[TOOL_CALLS]getx"]),
        ("mistral", ["[", "1]"], ["", "[1]"]),
        ("pythonic", ["[", "get_weather", "er"], ["", "", "[get_weatherer"]),
        ("llama3_json", ["{", '"answer', '": 1}'], ["", '{"answer', '": 1}']),
        ("generic", ["```py", "\n", "x=1"], ["", "", "```py\nx=1"]),
        ("hermes", ["\n", "\n", "x", "\n"], ["", "", "\n\nx", "\n"]),
    ],
)
def test_text_is_withheld_only_while_it_may_become_a_call(
    tool: str, parts: list[str], given: list[str]
) -> None:
    channels = stage(tool)
    assert [feed(channels, part) for part in parts] == [
        [Content(text)] if text else [] for text in given
    ]


def test_withheld_text_comes_with_the_last_piece() -> None:
    """A stop string ends the turn while a candidate is held (bug bank 007)."""
    for held in ("<tool_cal", '<tool_call>\n{"name": "get_weather", "argum'):
        channels = stage()
        assert feed(channels, held) == []
        assert channels.feed(Piece(0, "", finish=Finish.STOP)) == [
            Content(held),
            End(Finish.STOP, 0),
        ]


def test_json_arguments_stream_as_they_come() -> None:
    channels = stage()
    assert feed(channels, '<tool_call>\n{"name": "get_weather", "arguments": {') == []
    assert feed(channels, '"city') == [
        CallStart(0, "call_1", "get_weather"),
        CallArguments(0, '{"city'),
    ]
    assert feed(channels, '": "Os') == [CallArguments(0, '": "Os')]
    assert feed(channels, 'lo"') == [CallArguments(0, 'lo"')]
    assert feed(channels, "}") == [CallArguments(0, "}"), CallEnd(0, True)]
    assert feed(channels, "}\n</tool_call>") == []
    assert channels.feed(Piece(0, "", finish=Finish.STOP)) == [End(Finish.STOP, 1)]


def test_a_parameter_comes_when_it_closes() -> None:
    channels = stage("qwen3_xml")
    assert feed(channels, "<tool_call><function=get_weather>") == []
    assert feed(channels, "<parameter=city>Oslo") == [CallStart(0, "call_1", "get_weather")]
    assert feed(channels, "</parameter><parameter=days>") == [CallArguments(0, '{"city": "Oslo"')]
    assert feed(channels, "3</parameter></function>") == [
        CallArguments(0, ', "days": 3}'),
        CallEnd(0, True),
    ]


def test_several_calls_in_one_piece_all_come_at_once() -> None:
    """Bug bank 019 and 021: none is dropped, indices count, ids differ."""
    parsers = Parsers("hermes", "none")
    channels = parsers.channels(prompt="", tools=TOOLS)
    deltas = feed(channels, hermes("get_weather", OSLO) * 3)
    starts = [delta for delta in deltas if isinstance(delta, CallStart)]
    assert [start.index for start in starts] == [0, 1, 2]
    assert len({start.id for start in starts}) == 3


def test_a_tool_without_parameters_gets_an_empty_object() -> None:
    """Bug bank 017, with `parameters` left out."""
    tools = tool_schemas([{"type": "function", "function": {"name": "list_tables"}}])
    for tool, text in (("hermes", hermes("list_tables", "{}")), ("qwen3_xml", xml("list_tables"))):
        channels = Parsers(tool, "none").channels(prompt="", tools=tools)
        arguments = [one.text for one in feed(channels, text) if isinstance(one, CallArguments)]
        assert "".join(arguments) == "{}"


def test_plain_text_streams_while_tools_are_offered() -> None:
    """Bug bank 023."""
    channels = stage()
    words = ["One", " two", ", three", ": a < b", "\n", " end"]
    assert [feed(channels, word) for word in words] == [[Content(word)] for word in words]


def test_reasoning_streams_and_its_tokens_are_counted() -> None:
    end = IDS["</think>"]
    channels = stage(think="qwen3", prompt="assistant\n<think>\n")
    assert channels.feed(Piece(0, "a", (1,))) == [Reasoning("a")]
    assert channels.feed(Piece(0, " b\n", (2, 3))) == [Reasoning(" b")]
    assert channels.feed(Piece(0, "</think>\n\nc", (4, end, 5, 6))) == [Content("c")]
    assert channels.feed(Piece(0, "d", (7,))) == [Content("d")]
    assert channels.reasoning_tokens == 5


def test_a_tag_in_a_piece_of_its_own_is_counted_too() -> None:
    channels = stage(think="qwen3", prompt="assistant\n<think>\n")
    for token, text in enumerate(["a", "b", "</think>", "\n\n", "c", " d"]):
        channels.feed(Piece(0, text, (token,)))
    assert channels.reasoning_tokens == 3


def test_marks_stand_at_byte_offsets() -> None:
    channels = stage("mistral")
    piece = Piece(0, f"é日 get_weather{OSLO}", marks=((6, IDS["[TOOL_CALLS]"]), (7, 1)))
    assert channels.feed(piece)[:2] == [Content("é日 "), CallStart(0, "call_1", "get_weather")]


def test_special_tokens_of_calls_are_no_text_where_no_tools_are() -> None:
    channels = Parsers("mistral", "none", IDS.get).channels(prompt="", tools={})
    assert channels.feed(Piece(0, "ab", marks=((1, IDS["[TOOL_CALLS]"]),))) == [Content("ab")]


def test_special_tokens_already_in_the_text_are_not_written_twice() -> None:
    parsers = Parsers("mistral", "none", IDS.get)
    channels = parsers.channels(prompt="", tools=TOOLS, marks_only=False)
    mark = (0, IDS["[TOOL_CALLS]"])
    deltas = channels.feed(Piece(0, "[TOOL_CALLS]list_tables{}", marks=(mark,)))
    assert [type(delta) for delta in deltas] == [CallStart, CallArguments, CallEnd]


def test_only_tools_that_may_be_called_are_called() -> None:
    """A forced tool stands alone in `tools`; a call of another is content."""
    tools = tool_schemas([{"type": "function", "function": {"name": "edit", "parameters": {}}}])
    channels = Parsers("hermes", "none").channels(prompt="", tools=tools)
    text = hermes("get_weather", OSLO)
    assert feed(channels, text) == [Content(text)]


def test_ids_are_unique_over_choices() -> None:
    parsers = Parsers("hermes", "none")
    ids = set()
    for _ in range(50):
        channels = parsers.channels(prompt="", tools=TOOLS)
        ids |= {
            one.id
            for one in feed(channels, hermes("list_tables", "{}"))
            if isinstance(one, CallStart)
        }
    assert len(ids) == 50


def test_a_value_of_any_size_streams_in_linear_time() -> None:
    text = json.dumps({"text": 'a "b" \\ \n' * 20_000})
    channels = stage()
    feed(channels, '<tool_call>{"name": "edit", "arguments": ')
    given = []
    for at in range(0, len(text), 64):
        given += [
            one.text for one in feed(channels, text[at : at + 64]) if isinstance(one, CallArguments)
        ]
    assert "".join(given) == text
    assert max(len(one) for one in given) < 200

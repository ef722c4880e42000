"""Calls as JSON objects between tags."""
# ruff: noqa: E501 (a sample is one line)

from __future__ import annotations

import json
from typing import Any

from edgeserve.generation import Finish
from tests.text.channels.sample import (
    ESCAPED,
    NESTED,
    OSLO,
    TABLES,
    TRICKY,
    UNICODE,
    WEATHER,
    Call,
    Sample,
    hermes,
)


def samples() -> list[Sample]:
    def one(id: str, text: str, *calls: Call, **more: Any) -> Sample:
        return Sample(f"hermes-{id}", "hermes", text, calls=list(calls), **more)

    two = hermes("get_weather", OSLO) + "\n" + hermes("list_tables", "{}")
    unknown = hermes("launch", '{"x": "<tool_call>"}')
    return [
        one(
            "plain",
            "Hello, world. 1 < 2 and <b>bold</b>",
            content="Hello, world. 1 < 2 and <b>bold</b>",
        ),
        one("call", hermes("get_weather", OSLO), WEATHER),
        one("tight", hermes("get_weather", OSLO, ""), WEATHER),
        one("two", two, WEATHER, TABLES),
        one("two-tight", hermes("list_tables", "{}", "") * 2, TABLES, TABLES),
        one("three", hermes("get_weather", OSLO) * 3, WEATHER, WEATHER, WEATHER),
        one(
            "around",
            f"Let me look.\n\n{hermes('get_weather', OSLO)}\nDone.",
            WEATHER,
            content="Let me look.\n\n\nDone.",
        ),
        one("nested", hermes("edit", NESTED), ("edit", NESTED)),
        one("tricky", hermes("edit", TRICKY), ("edit", TRICKY)),
        one("unicode", hermes("get_weather", UNICODE), ("get_weather", UNICODE)),
        one("escaped", hermes("get_weather", ESCAPED), ("get_weather", ESCAPED)),
        one(
            "spaces",
            '<tool_call> { "name" : "get_weather" , "arguments" : {  "city" : "Oslo" } } </tool_call>',
            ("get_weather", '{"city" : "Oslo" }'),
        ),
        one("empty-spaced", hermes("list_tables", "{ \n }"), TABLES),
        one("no-arguments", '<tool_call>\n{"name": "list_tables"}\n</tool_call>', TABLES),
        one("null-arguments", hermes("list_tables", "null"), TABLES),
        one(
            "arguments-first",
            '<tool_call>{"arguments": {"city": "Oslo"}, "name": "get_weather"}</tool_call>',
            WEATHER,
        ),
        one(
            "parameters",
            '<tool_call>{"name": "get_weather", "parameters": {"city": "Oslo"}}</tool_call>',
            WEATHER,
        ),
        one("string-arguments", hermes("get_weather", json.dumps(OSLO)), WEATHER),
        one(
            "openai-shape",
            '<tool_call>{"id": "x", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}</tool_call>',
            WEATHER,
        ),
        one(
            "array",
            f'<tool_call>[{{"name": "get_weather", "arguments": {OSLO}}}, {{"name": "list_tables", "arguments": {{}}}}]</tool_call>',
            WEATHER,
            TABLES,
        ),
        one(
            "late-keys",
            '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": [1, "}"]}</tool_call>',
            WEATHER,
        ),
        one(
            "missing-brace",
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}\n</tool_call>',
            WEATHER,
        ),
        one(
            "no-closer",
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}',
            WEATHER,
        ),
        one(
            "raw-newline",
            hermes("edit", '{"text": "a\nb\t\\d \\u12 \\\'"}'),
            ("edit", '{"text": "a\\nb\\t\\\\d \\\\u12 \'"}'),
        ),
        one(
            "python-words",
            hermes("edit", '{"force": True, "note": None}'),
            ("edit", '{"force": true, "note": null}'),
        ),
        one("unknown", unknown, content=unknown),
        one(
            "unknown-then-known",
            unknown + "\n" + hermes("get_weather", OSLO),
            WEATHER,
            content=unknown + "\n",
        ),
        one(
            "unknown-first-in-array",
            f'<tool_call>[{{"name": "launch", "arguments": {{}}}}, {{"name": "get_weather", "arguments": {OSLO}}}]</tool_call>',
            WEATHER,
            content='<tool_call>[{"name": "launch", "arguments": {}}',
        ),
        one(
            "unknown-prefix",
            hermes("get_weather_now", OSLO),
            content=hermes("get_weather_now", OSLO),
        ),
        one(
            "not-json",
            "<tool_call>\nnot json\n</tool_call>",
            content="<tool_call>\nnot json\n</tool_call>",
        ),
        one(
            "broken-then-call",
            "<tool_call>{oops " + hermes("get_weather", OSLO),
            WEATHER,
            content="<tool_call>{oops ",
        ),
        one("array-arguments", hermes("get_weather", "[1]"), content=hermes("get_weather", "[1]")),
        one(
            "no-name",
            '<tool_call>{"arguments": {}}</tool_call>',
            content='<tool_call>{"arguments": {}}</tool_call>',
        ),
        one(
            "unfinished-name",
            '<tool_call>\n{"name": "get_wea',
            content='<tool_call>\n{"name": "get_wea',
            finish=Finish.LENGTH,
        ),
        one("unfinished-opener", "so <tool_cal", content="so <tool_cal"),
        one(
            "unfinished-arguments",
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os',
            ("get_weather", '{"city": "Os'),
            incomplete=True,
            finish=Finish.LENGTH,
        ),
        one(
            "broken-arguments",
            '<tool_call>{"name": "get_weather", "arguments": {"city": oops}}</tool_call>',
            ("get_weather", '{"city": '),
            incomplete=True,
            content="oops}}</tool_call>",
        ),
        one("no-tools", hermes("get_weather", OSLO), content=hermes("get_weather", OSLO), tools={}),
        one("blank", "\n \n", content="\n \n"),
        one("blank-call", "\n\n" + hermes("list_tables", "{}") + "\n\n", TABLES),
        one("leading-space", "\n Hi", content="\n Hi"),
        one(
            "deep",
            hermes("edit", '{"options": ' + "[" * 200 + "]" * 200 + "}"),
            ("edit", '{"options": ' + "[" * 200 + "]" * 200 + "}"),
        ),
        one(
            "function-in-function",
            "<tool_call>" + '{"function": ' * 2000,
            content="<tool_call>" + '{"function": ' * 2000,
        ),
    ]

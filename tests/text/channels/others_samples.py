"""Llama, Mistral, Nemotron and Python's way to write calls."""
# ruff: noqa: E501 (a sample is one line)

from __future__ import annotations

from typing import Any

from edgeserve.generation import Finish
from tests.text.channels.sample import OSLO, TABLES, WEATHER, Call, Sample, xml


def samples() -> list[Sample]:
    def one(id: str, text: str, *calls: Call, **more: Any) -> Sample:
        return Sample(id, id.split("-")[0], text, calls=list(calls), **more)

    bare = f'{{"name": "get_weather", "parameters": {OSLO}}}'
    listed = f'[{{"name": "get_weather", "arguments": {OSLO}}}, {{"name": "list_tables", "arguments": {{}}}}]'
    answer = '{"answer": [1, 2], "name": "get_weather"}'
    python = '[get_weather(city="Oslo"), list_tables()]'
    return [
        one("llama3_json-bare", bare, WEATHER),
        one("llama3_json-tag", "<|python_tag|>" + bare, WEATHER),
        one("llama3_json-two", f"{bare}; {bare}", WEATHER, WEATHER),
        one("llama3_json-text-after", f"{bare}; so", WEATHER, content="; so"),
        one("llama3_json-answer", answer, content=answer),
        one(
            "llama3_json-other-name",
            '{"name": "Bob", "parameters": {}}',
            content='{"name": "Bob", "parameters": {}}',
        ),
        one("llama3_json-later", "So: " + bare, content="So: " + bare),
        one(
            "llama3_json-function-key",
            '{"type": "function", "function": "get_weather", "parameters": {"city": "Oslo"}}',
            WEATHER,
        ),
        one("llama3_json-code", "<|python_tag|>print(1)", content="<|python_tag|>print(1)"),
        one("mistral-array", "[TOOL_CALLS]" + listed, WEATHER, TABLES),
        one("mistral-array-spaced", "[TOOL_CALLS] \n" + listed + "\n", WEATHER, TABLES),
        one(
            "mistral-ids",
            '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "abcdefghi"}]',
            WEATHER,
        ),
        one("mistral-named", f"[TOOL_CALLS]get_weather{OSLO}", WEATHER),
        one("mistral-args", f"[TOOL_CALLS]get_weather[ARGS]{OSLO}", WEATHER),
        one("mistral-call-id", f"[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{OSLO}", WEATHER),
        one(
            "mistral-two",
            f"Hm.[TOOL_CALLS]get_weather[ARGS]{OSLO}[TOOL_CALLS]list_tables[ARGS]{{}}",
            WEATHER,
            TABLES,
            content="Hm.",
        ),
        one(
            "mistral-prefix-names",
            "[TOOL_CALLS]get[ARGS]{}[TOOL_CALLS]get_all[ARGS]{}",
            ("get", "{}"),
            ("get_all", "{}"),
            tools={"get": {}, "get_all": {}},
        ),
        one("mistral-unknown", "[TOOL_CALLS]launch[ARGS]{}", content="[TOOL_CALLS]launch[ARGS]{}"),
        one(
            "mistral-no-json", "[TOOL_CALLS]get_weather now", content="[TOOL_CALLS]get_weather now"
        ),
        one("mistral-link", "see [TOOL](x)", content="see [TOOL](x)"),
        one("nemotron-array", f"<TOOLCALL>{listed}</TOOLCALL>", WEATHER, TABLES),
        one(
            "nemotron-spaced",
            f"ok\n<TOOLCALL>\n{listed}\n</TOOLCALL>\n",
            WEATHER,
            TABLES,
            content="ok\n",
        ),
        one(
            "nemotron-one-unknown",
            f'<TOOLCALL>[{{"name": "get_weather", "arguments": {OSLO}}}, {{"name": "nope", "arguments": {{}}}}]</TOOLCALL>',
            WEATHER,
            content=', {"name": "nope", "arguments": {}}',
        ),
        one("nemotron-xml", xml("get_weather", city="Oslo"), WEATHER),
        one("pythonic-list", python, WEATHER, TABLES),
        one("pythonic-wrapped", f"<|python_start|>{python}<|python_end|>", WEATHER, TABLES),
        one(
            "pythonic-lfm2",
            f"Hm <|tool_call_start|>{python}<|tool_call_end|>",
            WEATHER,
            TABLES,
            content="Hm ",
        ),
        one(
            "pythonic-spaced",
            '[ get_weather( city = "Oslo" , days=3, ) , list_tables( ) ]',
            ("get_weather", '{"city": "Oslo", "days": 3}'),
            TABLES,
        ),
        one(
            "pythonic-values",
            """[edit(text='a "q" )]', options={'k': [1, (2,)], "n": None}, force=True, ratio=-1.5)]""",
            (
                "edit",
                '{"text": "a \\"q\\" )]", "options": {"k": [1, [2]], "n": null}, "force": true, "ratio": -1.5}',
            ),
        ),
        one(
            "pythonic-json-words",
            '[edit(force=true, note=null, options={"a": false})]',
            ("edit", '{"force": true, "note": null, "options": {"a": false}}'),
        ),
        one("pythonic-newline", "[edit(text='a\nb')]", ("edit", '{"text": "a\\nb"}')),
        one("pythonic-link", "[link](x) and [1, 2]", content="[link](x) and [1, 2]"),
        one("pythonic-unknown", "[launch(a=1)]", content="[launch(a=1)]"),
        one("pythonic-positional", '[get_weather("Oslo")]', content='[get_weather("Oslo")]'),
        one(
            "pythonic-broken",
            '[get_weather(city="Oslo", days=two)]',
            ("get_weather", '{"city": "Oslo"'),
            incomplete=True,
            content=", days=two)]",
        ),
        one(
            "pythonic-cut",
            '[get_weather(city="Os',
            content='[get_weather(city="Os',
            finish=Finish.LENGTH,
        ),
    ]

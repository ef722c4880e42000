"""Wrappers and payloads of models of which we know nothing."""
# ruff: noqa: E501 (a sample is one line)

from __future__ import annotations

from typing import Any

from tests.text.channels.sample import OSLO, TABLES, WEATHER, Call, Sample, xml


def samples() -> list[Sample]:
    def one(id: str, text: str, *calls: Call, **more: Any) -> Sample:
        return Sample(f"generic-{id}", "generic", text, calls=list(calls), **more)

    one_json = f'{{"name": "get_weather", "arguments": {OSLO}}}'
    tags = (
        "tool_call",
        "tool_calls",
        "toolcall",
        "TOOLCALL",
        "function_call",
        "function_calls",
        "tools",
        "atem:function_calls",
    )
    atem = '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Oslo</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
    fenced = f"```json\n{one_json}\n```"
    code = "```python\nprint(1)\n```"
    return [
        *(one(f"tag-{tag}", f"<{tag}>\n{one_json}\n</{tag}>", WEATHER) for tag in tags),
        one("xml", xml("get_weather", city="Oslo"), WEATHER),
        one(
            "function",
            "<function=get_weather><parameter=city>Oslo</parameter></function> ok",
            WEATHER,
            content=" ok",
        ),
        one("atem", atem, WEATHER),
        one("bracket", f"[TOOL_CALL]{one_json}[/TOOL_CALL]", WEATHER),
        one("brackets-open", f"[TOOL_CALLS][{one_json}]", WEATHER),
        one("mistral", f"[TOOL_CALLS]get_weather[ARGS]{OSLO}", WEATHER),
        one(
            "several",
            f'<tool_call>{{"tool_calls": [{one_json}, {one_json}]}}</tool_call>',
            WEATHER,
            WEATHER,
        ),
        one("lines", f"<tool_calls>\n{one_json}\n{one_json}\n</tool_calls>", WEATHER, WEATHER),
        one(
            "literal",
            "<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}</tool_call>",
            WEATHER,
        ),
        one("literal-list", "<tool_call>[{'name': 'list_tables'}]</tool_call>", TABLES),
        one(
            "literal-unknown",
            "<tool_call>{'name': 'nope'}</tool_call>",
            content="<tool_call>{'name': 'nope'}</tool_call>",
        ),
        one(
            "call-lines",
            '<tool_call>get_weather(city="Oslo")\nlist_tables()</tool_call>',
            WEATHER,
            TABLES,
        ),
        one("python-list", '<tool_call>[get_weather(city="Oslo")]</tool_call>', WEATHER),
        one("bare", one_json, WEATHER),
        one("bare-list", f"[{one_json}]", WEATHER),
        one("bare-answer", '{"answer": 1}', content='{"answer": 1}'),
        one("fenced", fenced, WEATHER),
        one("fenced-in-tags", f"<tool_call>\n{fenced}\n</tool_call>", WEATHER),
        one("code", code, content=code),
        one("python-tag", f"<|python_tag|>{one_json}", WEATHER),
        one("text", "a [b] {c} <d> `e`", content="a [b] {c} <d> `e`"),
    ]

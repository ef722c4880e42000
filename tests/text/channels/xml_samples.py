"""Calls as tags."""
# ruff: noqa: E501 (a sample is one line)

from __future__ import annotations

import json
from typing import Any

from edgeserve.generation import Finish
from tests.text.channels.sample import OSLO, TABLES, WEATHER, Call, Sample, hermes, xml


def samples() -> list[Sample]:
    def one(id: str, text: str, *calls: Call, **more: Any) -> Sample:
        return Sample(f"xml-{id}", "qwen3_xml", text, calls=list(calls), **more)

    all_kinds = xml(
        "edit",
        path="7",
        lines="[1, 2]",
        options="{'a': True}",
        force="True",
        ratio="1.50",
        note="null",
        mode="1",
        other="5",
    )
    told = '{"path": "7", "lines": [1, 2], "options": {"a": true}, "force": true, "ratio": 1.50, "note": null, "mode": "1", "other": "5"}'
    code = "def f():\n\treturn \"</parameter>\" + '<tool_call>'  # <x> & {}\n"
    unknown = xml("launch", x="<tool_call>")
    return [
        one("call", xml("get_weather", city="Oslo"), WEATHER),
        one("tight", xml("get_weather", "", city="Oslo"), WEATHER),
        one("empty", xml("list_tables"), TABLES),
        one("empty-tight", xml("list_tables", ""), TABLES),
        one("two", xml("get_weather", city="Oslo") + "\n" + xml("list_tables"), WEATHER, TABLES),
        one(
            "shared-tags",
            "<tool_call>\n<function=list_tables>\n</function>\n<function=list_tables>\n</function>\n</tool_call>",
            TABLES,
            TABLES,
        ),
        one(
            "no-outer", "<function=get_weather><parameter=city>Oslo</parameter></function>", WEATHER
        ),
        one("kinds", all_kinds, ("edit", told)),
        one(
            "misfit",
            xml("edit", lines="one, two", force="perhaps", ratio="fast"),
            ("edit", '{"lines": "one, two", "force": "perhaps", "ratio": "fast"}'),
        ),
        one("code", xml("edit", text=code), ("edit", json.dumps({"text": code}))),
        one(
            "unicode",
            xml("get_weather", city="Zürich 👩‍👧"),
            ("get_weather", '{"city": "Zürich 👩‍👧"}'),
        ),
        one(
            "big-integer",
            xml("get_weather", city="x", days="123456789012345678901234567890"),
            ("get_weather", '{"city": "x", "days": 123456789012345678901234567890}'),
        ),
        one(
            "repeated",
            "<tool_call><function=get_weather><parameter=city>Oslo</parameter><parameter=city>Rome</parameter></function></tool_call>",
            WEATHER,
        ),
        one(
            "around",
            "Look:\n" + xml("get_weather", city="Oslo") + "\nDone",
            WEATHER,
            content="Look:\n\nDone",
        ),
        one(
            "no-function-end",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</tool_call>",
            WEATHER,
        ),
        one(
            "no-ends",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>",
            WEATHER,
        ),
        one(
            "no-ends-cut",
            "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>",
            ("get_weather", '{"city": "Oslo"'),
            incomplete=True,
            finish=Finish.LENGTH,
        ),
        one(
            "cut-value",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOs",
            ("get_weather", '{"city": "Os'),
            incomplete=True,
            finish=Finish.LENGTH,
        ),
        one(
            "cut-name",
            "<tool_call>\n<function=get_wea",
            content="<tool_call>\n<function=get_wea",
            finish=Finish.LENGTH,
        ),
        one("unknown", unknown, content=unknown),
        one("unknown-then-known", unknown + xml("list_tables"), TABLES, content=unknown),
        one(
            "broken",
            "<tool_call>\n<function=get_weather>\nhm",
            content="<tool_call>\n<function=get_weather>\nhm",
        ),
        one("json", hermes("get_weather", OSLO), content=hermes("get_weather", OSLO)),
    ]

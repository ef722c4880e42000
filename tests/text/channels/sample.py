"""What a sample is: an answer as a model writes it, with what it says, thinks and calls."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from edgeserve.generation import Finish
from edgeserve.text.channels import Tools

Call = tuple[str, str]  # name, arguments as told

TOOLS: Tools = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
    "list_tables": {},
    "edit": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "text": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "options": {"type": "object"},
            "force": {"type": "boolean"},
            "ratio": {"type": "number"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "mode": {"$ref": "#/$defs/mode"},
        },
        "$defs": {"mode": {"enum": ["1", "2"]}},
    },
}


@dataclass
class Sample:
    id: str
    tool: str
    text: str
    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    incomplete: bool = False  # the last call breaks off
    think: str = "none"
    prompt: str = ""
    prefill: str = ""
    finish: Finish = Finish.STOP
    tools: Tools = field(default_factory=lambda: TOOLS)
    split_reasoning: bool = True


def hermes(name: str, arguments: str, gap: str = "\n") -> str:
    return f'<tool_call>{gap}{{"name": "{name}", "arguments": {arguments}}}{gap}</tool_call>'


def xml(name: str, gap: str = "\n", **parameters: str) -> str:
    values = "".join(
        f"<parameter={key}>{gap}{value}{gap}</parameter>{gap}" for key, value in parameters.items()
    )
    return f"<tool_call>{gap}<function={name}>{gap}{values}</function>{gap}</tool_call>"


OSLO = '{"city": "Oslo"}'
NESTED = json.dumps(
    {"path": "a\\b", "options": {"x": [1, {"y": None}], "e": {}}, "lines": [1, 2], "ratio": -1.5e3}
)
TRICKY = json.dumps({"text": 'say "}]" </tool_call> {x} [TOOL_CALLS] \\ \n\t end'})
UNICODE = json.dumps({"city": "Zürich 日本 👩‍👩‍👧"}, ensure_ascii=False)
ESCAPED = '{"city": "Z\\u00fcrich \\ud83d\\ude00 \\/"}'
WEATHER: Call = ("get_weather", OSLO)
TABLES: Call = ("list_tables", "{}")

"""Tools for chat templates that have no place for them: described in the system message, calls
and results written out as text, in the form that most models have seen (that of Hermes)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]

INTRODUCTION = """\
You may call functions to help with the user's request. The functions, as JSON Schema, are:
<tools>
{tools}
</tools>
For each call, write a JSON object with the function's name and arguments, like this:
<tool_call>
{{"name": "NAME", "arguments": {{"PARAMETER": "VALUE"}}}}
</tool_call>"""


def written_out(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None
) -> list[Message]:
    """The same conversation without tools, calls and results as such."""
    told = [_plain(message) for message in messages]
    if not tools:
        return told
    text = INTRODUCTION.format(tools="\n".join(map(_json, tools)))
    if not told or told[0].get("role") != "system":
        return [{"role": "system", "content": text}, *told]
    content = told[0].get("content") or ""
    if isinstance(content, str):
        content = f"{content}\n\n{text}" if content else text
    else:
        content = [*content, {"type": "text", "text": text}]
    return [{**told[0], "content": content}, *told[1:]]


def _plain(message: Message) -> Message:
    content = message.get("content") or ""
    if message.get("role") == "tool" and isinstance(content, str):
        text = f"<tool_response>\n{content}\n</tool_response>"
        return {"role": "user", "content": text}
    calls = message.get("tool_calls")
    if not calls or not isinstance(content, str):
        return message
    more = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**more, "content": "\n".join([*([content] if content else []), *map(_call, calls)])}


def _call(call: Mapping[str, Any]) -> str:
    function = call.get("function", call)
    arguments = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else _json(arguments)
    told = f'{{"name": {_json(function.get("name"))}, "arguments": {text}}}'
    return f"<tool_call>\n{told}\n</tool_call>"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)

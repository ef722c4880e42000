"""Tool calls as the Python API tells them: dicts in OpenAI's form, in parts and whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgeserve.text.channels import CallArguments, CallStart, Delta

CallPart = dict[str, Any]  # {"index", "id", "type", "function": {"name", "arguments"}}


def call_parts(deltas: Iterable[Delta]) -> list[CallPart]:
    """One for each call that gained something: `id`, `type` and `name` with its first part, always
    more of its `arguments`."""
    parts: dict[int, CallPart] = {}
    for delta in deltas:
        if isinstance(delta, CallStart):
            function = {"name": delta.name, "arguments": ""}
            told = {"index": delta.index, "id": delta.id, "type": "function"}
            parts[delta.index] = {**told, "function": function}
        elif isinstance(delta, CallArguments):
            new = {"index": delta.index, "function": {"arguments": ""}}
            parts.setdefault(delta.index, new)["function"]["arguments"] += delta.text
    return list(parts.values())


def whole_calls(parts: Iterable[CallPart]) -> list[dict[str, Any]]:
    """The calls that the parts of one choice make up."""
    calls: list[dict[str, Any]] = []
    for part in parts:
        if "id" in part:
            calls.append({"id": part["id"], "type": "function", "function": {**part["function"]}})
        else:
            calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return calls

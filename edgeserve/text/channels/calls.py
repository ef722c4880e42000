"""The tool calls of one choice: told one after the other, each with its own index and id."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgeserve.text.channels.delta import CallArguments, CallEnd, CallStart
from edgeserve.text.channels.reader import Reader

Tools = Mapping[str, Mapping[str, Any]]  # name -> JSON Schema of the arguments


def call_id() -> str:
    return "call_" + secrets.token_hex(12)


def tool_schemas(tools: Sequence[Mapping[str, Any]]) -> Tools:
    """By name, from tools in OpenAI's form or flat. Give only the tools that may be called: a
    forced one alone, none for `tool_choice` none."""
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        function = tool.get("function") or tool
        name, parameters = function.get("name"), function.get("parameters")
        if isinstance(name, str) and name:
            schemas[name] = parameters if isinstance(parameters, Mapping) else {}
    return schemas


class Calls:
    """Only names in `tools` are ever started."""

    def __init__(self, tools: Tools, reader: Reader, new_id: Callable[[], str] = call_id) -> None:
        self.tools = tools
        self.count = 0
        self._reader = reader
        self._new_id = new_id

    def start(self, name: str) -> None:
        """What was held of the block until here was markup."""
        self._reader.drop()
        self._reader.give(CallStart(self.count, self._new_id(), name))
        self.count += 1

    def arguments(self, text: str) -> None:
        self._reader.give(CallArguments(self.count - 1, text))

    def end(self, *, complete: bool) -> None:
        self._reader.give(CallEnd(self.count - 1, complete))

    def whole(self, name: str, arguments: str) -> None:
        self.start(name)
        self.arguments(arguments)
        self.end(complete=True)

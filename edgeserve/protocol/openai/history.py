"""The tool calls and tool results of a conversation, as the chat template takes them.

A result answers a call that an earlier message made. The older names (`function_call`, role
`function`) become the newer ones.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from edgeserve.errors import InvalidRequest, MissingField
from edgeserve.pipeline.messages import short
from edgeserve.protocol.body import convert
from edgeserve.text.channels.coerce import load_json


class PastFunction(msgspec.Struct, frozen=True):
    name: str
    arguments: str | dict[str, Any] | None = None


class PastCall(msgspec.Struct, frozen=True):
    id: str
    function: PastFunction


class Called(Protocol):
    """A message of the body, as far as tools go."""

    @property
    def role(self) -> str: ...
    @property
    def tool_calls(self) -> Any: ...
    @property
    def function_call(self) -> Any: ...
    @property
    def tool_call_id(self) -> Any: ...
    @property
    def name(self) -> Any: ...
    @property
    def reasoning_content(self) -> Any: ...
    @property
    def reasoning(self) -> Any: ...


class History:
    """Follows the messages of one conversation, front to back."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # of the calls so far, by their id

    def assistant(self, message: Called, path: str) -> dict[str, Any]:
        """What an assistant's message has beside its content."""
        calls = self._calls(message, path)
        for call in calls:
            self._names[call["id"]] = call["function"]["name"]
        more: dict[str, Any] = {"tool_calls": calls} if calls else {}
        thoughts = (message.reasoning_content, message.reasoning)
        reasoning = next((one for one in thoughts if isinstance(one, str) and one), None)
        return more if reasoning is None else {**more, "reasoning_content": reasoning}

    def result(self, message: Called, path: str) -> dict[str, Any]:
        """What a tool's message has beside its content; `path` is that of the message."""
        if message.role == "function":
            return self._older_result(message, path)
        path = f"{path}.tool_call_id"
        if message.tool_call_id is None:
            raise MissingField(path)
        call = convert(message.tool_call_id, str, path)
        if call not in self._names:
            raise InvalidRequest(
                f"'{path}' is '{short(call)}', but no message before it has a call with this id",
                param=path,
            )
        return {"tool_call_id": call, "name": self._names[call]}

    def _calls(self, message: Called, path: str) -> list[dict[str, Any]]:
        if message.tool_calls:
            path = f"{path}.tool_calls"
            calls = convert(message.tool_calls, list[PastCall], path)
            return [
                _call(call.id, call.function, f"{path}[{i}].function")
                for i, call in enumerate(calls)
            ]
        if message.function_call:
            path = f"{path}.function_call"
            function = convert(message.function_call, PastFunction, path)
            return [_call(f"call_{len(self._names)}", function, path)]
        return []

    def _older_result(self, message: Called, path: str) -> dict[str, Any]:
        path = f"{path}.name"
        if message.name is None:
            raise MissingField(path)
        name = convert(message.name, str, path)
        for call, called in reversed(self._names.items()):
            if called == name:
                return {"tool_call_id": call, "name": name}
        raise InvalidRequest(
            f"'{path}' is '{short(name)}', but no message before it calls this function", param=path
        )


def _call(id: str, function: PastFunction, path: str) -> dict[str, Any]:
    arguments: object = function.arguments or {}
    if isinstance(arguments, str):
        arguments = load_json(arguments) if arguments.strip() else {}
    if not isinstance(arguments, dict):
        raise InvalidRequest(
            f"'{path}.arguments' must be the text of a JSON object", param=f"{path}.arguments"
        )
    return {
        "id": id,
        "type": "function",
        "function": {"name": function.name, "arguments": arguments},
    }

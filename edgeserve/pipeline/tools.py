"""Which tools a call offers the model: the checked list, and what `tool_choice` leaves of it.

A named choice offers that tool alone, `none` offers nothing. What is offered is what the template
shows and what the parser takes calls of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgeserve.errors import InvalidRequest, MissingField, UnsupportedFeature, WrongType

Tool = Mapping[str, Any]

MODES = ("auto", "none", "required")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
MAX_TOOLS = 1024


def offered(tools: Sequence[Tool] | None, choice: object = None) -> tuple[Tool, ...]:
    """The tools that may be called. Raises `InvalidRequest` naming `tools[i]...` or
    `tool_choice`."""
    names = _names(tools or ())
    wanted = _wanted(choice)
    if isinstance(wanted, list):
        return tuple(_chosen(name, tools or (), names) for name in wanted)
    if wanted in (None, "auto"):
        return tuple(tools or ())
    if wanted == "none":
        return ()
    if not tools:
        raise InvalidRequest(
            "'tool_choice' asks for a call, but there are no 'tools'", param="tool_choice"
        )
    if wanted == "required":
        return tuple(tools)
    return (_chosen(wanted, tools, names),)


def _chosen(name: str, tools: Sequence[Tool], names: list[str]) -> Tool:
    if name not in names:
        raise InvalidRequest(
            f"'tool_choice' names a tool that is not in 'tools'; there are: {', '.join(names)}",
            param="tool_choice",
        )
    return tools[names.index(name)]


def must_call(choice: object) -> bool:
    """Whether the answer must be calls."""
    wanted = _wanted(choice)
    if isinstance(wanted, list):
        assert isinstance(choice, Mapping), "several are named in an object"
        return bool(choice["allowed_tools"].get("mode") == "required")
    return wanted not in (None, "auto", "none")


def is_named(choice: object) -> bool:
    """Whether it must be one call of one tool."""
    return isinstance(_wanted(choice), str) and must_call(choice) and choice != "required"


def _wanted(choice: object) -> str | list[str] | None:
    """A mode, a name or several names."""
    if choice is None or isinstance(choice, str):
        return choice
    if not isinstance(choice, Mapping):
        raise WrongType("tool_choice", "a string or an object", _noun(choice))
    kind = choice.get("type", "function")
    allowed = choice.get("allowed_tools")
    if kind == "allowed_tools" and isinstance(allowed, Mapping):
        return [
            _named(one) for one in _of(allowed, "tools", list, "tool_choice.allowed_tools") or ()
        ]
    if kind != "function":
        raise UnsupportedFeature(
            "'tool_choice' of another type than 'function' or 'allowed_tools' is not supported",
            param="tool_choice.type",
        )
    return _named(choice)


def _named(choice: object) -> str:
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise InvalidRequest(
            "'tool_choice' must be auto, none, required, a tool's name or "
            '{"type": "function", "function": {"name": ...}}',
            param="tool_choice",
        )
    return name


def _names(tools: Sequence[Tool]) -> list[str]:
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise WrongType("tools", "an array", _noun(tools))
    if len(tools) > MAX_TOOLS:
        raise InvalidRequest(f"'tools' must have at most {MAX_TOOLS} items", param="tools")
    names: list[str] = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        name = _name(tool, path)
        if name in names:
            raise InvalidRequest(
                f"{path} has the name of tools[{names.index(name)}]; names must differ",
                param=f"{path}.function.name",
            )
        names.append(name)
    return names


def _name(tool: Tool, path: str) -> str:
    if not isinstance(tool, Mapping):
        raise WrongType(path, "an object", _noun(tool))
    if tool.get("type", "function") != "function":
        raise UnsupportedFeature(
            f"{path} is of another type than 'function', which is not supported",
            param=f"{path}.type",
        )
    function = _of(tool, "function", Mapping, path)
    path = f"{path}.function"
    if function is None:
        raise MissingField(path)
    name = _of(function, "name", str, path)
    if name is None:
        raise MissingField(f"{path}.name")
    if not NAME.fullmatch(name):
        raise InvalidRequest(
            f"'{path}.name' must have 1 to 128 letters, digits, dots, dashes or underscores",
            param=f"{path}.name",
        )
    _of(function, "description", str, path)
    _of(function, "strict", bool, path)
    parameters = _of(function, "parameters", Mapping, path)
    if parameters is not None:
        _check_schema(parameters, f"{path}.parameters")
    return str(name)


def _check_schema(schema: Mapping[str, Any], path: str) -> None:
    """The frame that every schema of arguments has; what stands inside is the model's to read."""
    kind = schema.get("type", "object")
    if kind != "object":
        raise InvalidRequest(f"'{path}.type' must be 'object'", param=f"{path}.type")
    for name, one in (_of(schema, "properties", Mapping, path) or {}).items():
        if not isinstance(one, (Mapping, bool)):
            raise WrongType(f"{path}.properties.{name}", "an object", _noun(one))
    for index, one in enumerate(_of(schema, "required", list, path) or ()):
        if not isinstance(one, str):
            raise WrongType(f"{path}.required[{index}]", "a string", _noun(one))


_NOUNS = {Mapping: "an object", str: "a string", bool: "true or false", list: "an array"}


def _of(holder: Mapping[str, Any], key: str, kind: type[Any], path: str) -> Any:
    """The value of a key; None when it is not there or null."""
    value = holder.get(key)
    if value is not None and not isinstance(value, kind):
        raise WrongType(f"{path}.{key}", _NOUNS[kind], _noun(value))
    return value


def _noun(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "a number"
    if value is None:
        return "null"
    found = (noun for kind, noun in _NOUNS.items() if isinstance(value, kind))
    return next(found, type(value).__name__)

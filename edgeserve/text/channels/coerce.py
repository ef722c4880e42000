"""A parameter written as bare text, made JSON by what the tool's schema says of it.

Text that does not fit its type is kept as a string: a value is never lost or invented.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from edgeserve.text.channels.json_text import is_number

_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"} | {
    dict: "object",
    list: "array",
}
_DEPTH = 16  # of references and alternatives followed


def parameter_json(text: str, name: str, schema: Mapping[str, Any]) -> str:
    """The value of parameter `name` of a tool whose arguments have `schema`, as JSON."""
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, Mapping) else None
    return value_json(text, kinds(found, schema))


def value_json(text: str, wanted: frozenset[str]) -> str:
    for kind, read in _READERS:
        if kind in wanted and (value := read(text)) is not None:
            return value
    return json_string(text)


def json_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def kinds(schema: object, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """The JSON types that a schema allows as far as it says; none when it says nothing."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return frozenset()
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset([named])
    if isinstance(named, list):
        return frozenset(one for one in named if isinstance(one, str))
    if isinstance(reference := schema.get("$ref"), str):
        return kinds(_follow(reference, root), root, depth + 1)
    if "const" in schema:
        return _kinds_of([schema["const"]])
    if isinstance(values := schema.get("enum"), list):
        return _kinds_of(values)
    found: set[str] = set()
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            found |= kinds(part, root, depth + 1)
    return frozenset(found)


def _kinds_of(values: list[object]) -> frozenset[str]:
    return frozenset(_KINDS.get(type(value), "string") for value in values)


def _follow(reference: str, root: Mapping[str, Any]) -> object:
    node: object = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if not isinstance(node, Mapping):
            return None
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if step else node
    return node


def _null(text: str) -> str | None:
    return "null" if text.strip() in ("null", "None") else None


def _boolean(text: str) -> str | None:
    word = text.strip().lower()
    return word if word in ("true", "false") else None


def _integer(text: str) -> str | None:
    word = text.strip()
    if not is_number(word):
        return None
    if word.lstrip("-").isdigit():
        return word
    whole, _, rest = word.partition(".")
    return whole if rest and not rest.strip("0") else None


def _number(text: str) -> str | None:
    word = text.strip()
    return word if is_number(word) else None


def _container(opening: str) -> Callable[[str], str | None]:
    def read(text: str) -> str | None:
        word = text.strip()
        if not word.startswith(opening):
            return None
        return word if load_json(word) is not None else literal_json(word)

    return read


# The narrow kinds first: text that is a number is a number wherever one is allowed, and a string
# comes last because any text is one.
_READERS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("null", _null),
    ("boolean", _boolean),
    ("integer", _integer),
    ("number", _number),
    ("object", _container("{")),
    ("array", _container("[")),
)


def literal_json(text: str) -> str | None:
    """A Python literal as JSON; JSON itself is taken too. Line breaks may stand in strings."""
    for one in (text.strip(), text.strip().replace("\n", "\\n")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes: the text is not ours
                value = ast.literal_eval(one)
            if _is_json(value):
                return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    value = load_json(text)
    if value is None and text.strip() != "null":
        return None
    return json.dumps(value, ensure_ascii=False)


def load_json(text: str) -> object:
    """The value of JSON text, None when it is not JSON. Raw control characters may stand in
    strings; NaN and infinities may not stand anywhere."""
    try:
        return json.loads(text, strict=False, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _no_constant(word: str) -> object:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value


def _is_json(value: object) -> bool:
    """Iterative: a literal nests as deep as a model likes."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if not all(isinstance(key, str) for key in one):
                return False
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
        elif one is not None and not isinstance(one, str | bool | int | float):
            return False
    return True

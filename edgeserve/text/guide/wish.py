"""What a body asks for: the surfaces `response_format`, `guided_decoding`, `structured_outputs`
and `text.format` read into one `Wish`. At most one of them may ask, and for one thing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from edgeserve.errors import InvalidRequest, MissingField, UnknownField, WrongType
from edgeserve.guide import SOURCE_BYTES, Kind

GUIDED: dict[str, Kind] = {
    "json_object": "json_object",
    "json_schema": "json_schema",
    "regex": "regex",
    "ebnf": "ebnf",
    "choice": "choice",
    "structural_tag": "structural_tag",
}
# The names of vLLM's `structured_outputs`, beside ours.
STRUCTURED: dict[str, Kind] = {**GUIDED, "json": "json_schema", "grammar": "ebnf"}
SURFACES = ("response_format", "guided_decoding", "structured_outputs", "text.format")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to enforce, as the client wrote it. `param` is where it stands in the body."""

    kind: Kind
    source: Any  # schema or tag: dict, bool; regex, ebnf: str; choice: list of str; else None
    param: str
    jump_forward: bool = False


def read_wish(surfaces: Mapping[str, Any]) -> Wish | None:
    """The one wish among the surfaces of a body; None when they ask for nothing."""
    found: list[tuple[str, Wish]] = []
    for name in SURFACES:
        value = surfaces.get(name)
        wish = None if value is None else _READERS[name](value, name)
        if wish is not None:
            found.append((name, wish))
    if len(found) > 1:
        first, second = found[0][0], found[1][0]
        raise InvalidRequest(
            f"'{first}' and '{second}' both ask for structured output; send one of them",
            param=second,
        )
    return found[0][1] if found else None


# response_format and text.format -----------------------------------------------------------------


def _response_format(body: Any, at: str) -> Wish | None:
    kind = _string(_object(body, at), "type", at)
    if kind == "text":
        _only(body, at, "type")
        return None
    if kind == "json_object":
        _only(body, at, "type")
        return Wish(kind="json_object", source=None, param=at)
    if kind == "json_schema":
        _only(body, at, "type", "json_schema")
        return _named_schema(_member(body, "json_schema", at), f"{at}.json_schema")
    if kind == "structural_tag":
        return _wish("structural_tag", body, at)
    raise InvalidRequest(
        f"'{at}.type' must be text, json_object, json_schema or structural_tag, not '{kind}'",
        param=f"{at}.type",
    )


def _text_format(body: Any, at: str) -> Wish | None:
    """The flat form of /v1/responses: name, schema and strict beside `type`."""
    if _string(_object(body, at), "type", at) != "json_schema":
        return _response_format(body, at)
    rest = {key: value for key, value in body.items() if key != "type"}
    return _named_schema(rest, at)


def _named_schema(body: Any, at: str) -> Wish:
    _only(_object(body, at), at, "name", "schema", "strict", "description")
    if "name" in body:
        _string(body, "name", at)
    if not isinstance(body.get("strict"), (bool, type(None))):
        raise WrongType(f"{at}.strict", "true or false", _noun(body["strict"]))
    return _wish("json_schema", _member(body, "schema", at), f"{at}.schema")


# guided_decoding and structured_outputs ----------------------------------------------------------


def _guided(body: Any, at: str) -> Wish | None:
    return _one_of(body, at, GUIDED)


def _structured(body: Any, at: str) -> Wish | None:
    return _one_of(body, at, STRUCTURED)


def _one_of(body: Any, at: str, kinds: Mapping[str, Kind]) -> Wish | None:
    """Exactly one mode may be set; an empty value is not set."""
    _only(_object(body, at), at, *kinds, "jump_forward")
    jump = body.get("jump_forward")
    if not isinstance(jump, (bool, type(None))):
        raise WrongType(f"{at}.jump_forward", "true or false", _noun(jump))
    wishes = []
    for key, kind in kinds.items():
        wish = _mode(kind, body.get(key), f"{at}.{key}")
        if wish is not None:
            wishes.append(wish)
    if len(wishes) > 1:
        raise InvalidRequest(
            f"'{wishes[0].param}' and '{wishes[1].param}' exclude each other; send one of them",
            param=wishes[1].param,
        )
    return msgspec.structs.replace(wishes[0], jump_forward=bool(jump)) if wishes else None


def _mode(kind: Kind, value: Any, at: str) -> Wish | None:
    if value is None or value is False or value in ("", []):
        _check_type(kind, value, at)
        return None
    return _wish(kind, value, at)


def _wish(kind: Kind, value: Any, at: str) -> Wish:
    _check_type(kind, value, at)
    _check_size(value, at)
    if kind == "json_object":
        return Wish(kind=kind, source=None, param=at)
    if kind in ("json_schema", "structural_tag") and isinstance(value, str):
        value = _parse(value, at)
    return Wish(kind=kind, source=value, param=at)


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "json_object": ((bool,), "true or false"),
    "json_schema": ((dict, bool, str), "an object or a string"),
    "regex": ((str,), "a string"),
    "ebnf": ((str,), "a string"),
    "choice": ((list,), "an array of strings"),
    "structural_tag": ((dict, str), "an object or a string"),
}


def _check_type(kind: Kind, value: Any, at: str) -> None:
    types, expected = _TYPES[kind]
    if value is not None and value is not False and not isinstance(value, types):
        raise WrongType(at, expected, _noun(value))
    if kind == "choice" and isinstance(value, list):
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise WrongType(f"{at}[{index}]", "a string", _noun(item))


def _check_size(value: Any, at: str) -> None:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        size = len(text.encode("utf-8"))
    except RecursionError:
        raise InvalidRequest(f"'{at}' is nested too deeply", param=at) from None
    except UnicodeEncodeError:
        raise InvalidRequest(f"'{at}' has a lone surrogate", param=at) from None
    if size > SOURCE_BYTES:
        raise InvalidRequest(
            f"'{at}' has {size} bytes; a guide may have at most {SOURCE_BYTES}", param=at
        )


def _parse(text: str, at: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"'{at}' is not valid JSON: {error}", param=at) from None
    if not isinstance(value, (dict, bool)):
        raise WrongType(at, "an object", _noun(value))
    return value


# Shapes ------------------------------------------------------------------------------------------


def _object(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongType(at, "an object", _noun(value))
    return value


def _only(body: Mapping[str, Any], at: str, *keys: str) -> None:
    for key in body:
        if key not in keys:
            raise UnknownField(f"{at}.{key}")


def _member(body: Mapping[str, Any], key: str, at: str) -> Any:
    if body.get(key) is None:
        raise MissingField(f"{at}.{key}")
    return body[key]


def _string(body: Mapping[str, Any], key: str, at: str) -> str:
    value = _member(body, key, at)
    if not isinstance(value, str):
        raise WrongType(f"{at}.{key}", "a string", _noun(value))
    return value


def _noun(value: Any) -> str:
    names = {
        type(None): "null",
        bool: "true or false",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)


_READERS: dict[str, Callable[[Any, str], Wish | None]] = {
    "response_format": _response_format,
    "guided_decoding": _guided,
    "structured_outputs": _structured,
    "text.format": _text_format,
}

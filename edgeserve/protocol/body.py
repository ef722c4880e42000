"""From the bytes of a request body to a typed, checked struct: the door of every JSON route.

msgspec checks types and unknown fields; this file is the one translation of its refusals into
errors with a message, a dotted `param` such as `messages[0].content` and a code. The body is
strict JSON: NaN, lone surrogates, trailing text and a field of the body given twice are refused
(inside messages the last one counts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from edgeserve.errors import (
    InvalidJson,
    InvalidRequest,
    InvalidUnicode,
    MissingField,
    UnknownField,
    WrongType,
)

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

AT = re.compile(r" - at `\$\.?(.*)`$", re.DOTALL)
UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
TYPES = re.compile(r"Expected `([^`]*)`, got `([^`]*)`$")
LENGTH = re.compile(r"Expected `(array|object|str)` of length (>=|<=) (\d+)$")
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
NOUNS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


class Body(Generic[T]):
    """Reads bodies of one kind. Raises `InvalidRequest` for whatever is wrong with the bytes."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        fields = msgspec.structs.fields(kind)
        self._keys = tuple(f'"{field.encode_name}"'.encode() for field in fields)

    def read(self, raw: bytes) -> T:
        try:
            body = self._decode(raw)
        except msgspec.ValidationError as error:
            raise _refusal(str(error)) from None
        except msgspec.DecodeError as error:
            raise _malformed(raw, str(error)) from None
        except RecursionError:
            raise InvalidJson("it is nested too deeply") from None
        except (ValueError, OverflowError):
            raise InvalidJson("a number in it is too long") from None
        self._refuse_duplicates(body, raw)
        return body

    def _refuse_duplicates(self, body: T, raw: bytes) -> None:
        # PERF: inside a JSON string quotes are escaped, so `"name"` is always a whole token.
        # Counting the names of the fields that are set costs 60 ns each; only a name that
        # comes twice (a nested key, or a string value) needs the slow and exact look.
        for key, value in zip(self._keys, msgspec.structs.astuple(body), strict=True):
            if value is not None and raw.count(key) > 1:
                duplicate = _first_duplicate(raw)
                if duplicate is not None:
                    raise InvalidRequest(
                        f"field '{duplicate}' is given twice; send it once", param=duplicate
                    )
                return


def convert(value: object, kind: type[V], path: str) -> V:
    """A part of a body that was read as any value; errors name it from `path` on."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), path) from None


def _refusal(text: str, root: str = "") -> InvalidRequest:
    """The error that says what msgspec's sentence says, in the words of the API."""
    at = AT.search(text)
    path = at.group(1).replace("[...]", "") if at else ""  # a value of an object: the object
    path = _join(root, path) if path else root
    text = text[: at.start()] if at else text
    if found := UNKNOWN.match(text):
        return UnknownField(_join(path, found.group(1)))
    if found := MISSING.match(text):
        return MissingField(_join(path, found.group(1)))
    if found := TYPES.match(text):
        return WrongType(path or None, _nouns(found.group(1)), _nouns(found.group(2)))
    if found := LENGTH.match(text):
        bound = "at least" if found.group(2) == ">=" else "at most"
        noun = "characters" if found.group(1) == "str" else "items"
        return InvalidRequest(f"'{path}' must have {bound} {found.group(3)} {noun}", param=path)
    what = f"'{path}'" if path else "the request body"
    if "out of range" in text:
        return InvalidRequest(f"{what} is a number that is too large", param=path or None)
    return InvalidRequest(f"{what}: {text[:1].lower()}{text[1:]}", param=path or None)


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path and not field.startswith("[") else path + field


def _nouns(types: str) -> str:
    names = [NOUNS.get(name, name) for name in types.split(" | ") if name != "null"]
    return " or ".join(names) or "null"


def _malformed(raw: bytes, reason: str) -> InvalidRequest:
    if not raw.strip():
        return InvalidJson("it is empty")
    if LONE_SURROGATE.search(raw):
        return InvalidUnicode(_lone_surrogate_at(raw))
    if "UTF-8" in reason:
        return InvalidJson("it is not UTF-8")
    if "truncated" in reason:
        return InvalidJson("it ends too early")
    return InvalidJson(reason.removeprefix("JSON is malformed: "))


def _lone_surrogate_at(raw: bytes) -> str | None:
    """The path of the first string with a lone surrogate, as `messages[0].content`."""
    try:
        tree = json.loads(raw)
        return next(_surrogates(tree, ""), None)
    except (ValueError, RecursionError):
        return None


def _surrogates(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, str):
        if any("\ud800" <= char <= "\udfff" for char in node):
            yield path
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _surrogates(item, f"{path}[{index}]")
    elif isinstance(node, dict):
        for key, item in node.items():
            if any("\ud800" <= char <= "\udfff" for char in key):
                yield path
            yield from _surrogates(item, _join(path, key))


def _first_duplicate(raw: bytes) -> str | None:
    """The name of a field that an object of the body has twice, if any."""
    found: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        names: set[str] = set()
        for name, _ in items:
            if name in names:
                found.append(name)
            names.add(name)

    try:
        json.loads(raw, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None
    return found[0] if found else None

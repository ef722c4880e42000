"""Structural tags: free text in which a trigger opens a tag whose content follows a grammar.

{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<f="],
 "tags": [{"begin": "<f=add>", "content": {"type": "json_schema", "json_schema": {...}},
           "end": "</f>"}]}}
{"type": "structural_tag", "triggers": ["<f="],
 "structures": [{"begin": "<f=add>", "schema": {...}, "end": "</f>"}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgeserve.errors import InvalidRequest, UnknownField, UnsupportedFeature

TAGS = 256
TEXT = r"/(?s:.*)/"


class Tag(NamedTuple):
    begin: str
    schema: Any
    end: str
    at: str  # where its schema stands in the body


class Tags(NamedTuple):
    triggers: tuple[str, ...]
    tags: tuple[Tag, ...]
    at_least_one: bool = False
    stop_after_first: bool = False


def read_tags(body: Mapping[str, Any], at: str) -> Tags:
    """Raises InvalidRequest naming the member that is wrong."""
    if body.get("type", "structural_tag") != "structural_tag":
        raise InvalidRequest(f"'{at}.type' must be structural_tag", param=f"{at}.type")
    if "format" in body:
        _only(body, at, "type", "format")
        return _triggered(body["format"], f"{at}.format")
    _only(body, at, "type", "triggers", "structures")
    items = _list(body, "structures", at)
    tags = []
    for index, item in enumerate(items):
        here = f"{at}.structures[{index}]"
        _only(_mapping(item, here), here, "begin", "schema", "end")
        if not isinstance(item.get("schema", {}), (dict, bool)):
            raise InvalidRequest(f"'{here}.schema' must be an object", param=f"{here}.schema")
        schema = item.get("schema", {})
        tags.append(Tag(_text(item, "begin", here), schema, _end(item, here), f"{here}.schema"))
    return _checked(Tags(_triggers(body, at), tuple(tags)), at)


def _triggered(body: Any, at: str) -> Tags:
    kind = _mapping(body, at).get("type")
    if kind != "triggered_tags":
        raise UnsupportedFeature(
            f"'{at}.type' must be triggered_tags; other forms are not supported",
            param=f"{at}.type",
        )
    _only(body, at, "type", "triggers", "tags", "at_least_one", "stop_after_first")
    flags = {key: body.get(key, False) for key in ("at_least_one", "stop_after_first")}
    for key, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidRequest(f"'{at}.{key}' must be true or false", param=f"{at}.{key}")
    tags = []
    for index, item in enumerate(_list(body, "tags", at)):
        here = f"{at}.tags[{index}]"
        _only(_mapping(item, here), here, "type", "begin", "content", "end")
        schema = _content(item.get("content"), f"{here}.content")
        where = f"{here}.content.json_schema"
        tags.append(Tag(_text(item, "begin", here), schema, _end(item, here), where))
    return _checked(Tags(_triggers(body, at), tuple(tags), **flags), at)


def _content(body: Any, at: str) -> Any:
    if _mapping(body, at).get("type") != "json_schema":
        raise UnsupportedFeature(f"'{at}.type' must be json_schema", param=f"{at}.type")
    _only(body, at, "type", "json_schema")
    schema = body.get("json_schema")
    if not isinstance(schema, (dict, bool)):
        raise InvalidRequest(f"'{at}.json_schema' must be an object", param=f"{at}.json_schema")
    return schema


def _checked(tags: Tags, at: str) -> Tags:
    if not 1 <= len(tags.tags) <= TAGS:
        raise InvalidRequest(f"'{at}' must have from 1 to {TAGS} tags", param=at)
    for tag in tags.tags:
        if not any(tag.begin.startswith(trigger) for trigger in tags.triggers):
            raise InvalidRequest(
                f"'{at}': no trigger begins the tag that begins with {tag.begin!r}", param=at
            )
    return tags


def tags_to_lark(tags: Tags, schemas: Sequence[Any]) -> str:
    """`schemas`: one per tag, ready for the grammar. After a trigger only its tags go on."""
    lines, names = [], []
    for index, (tag, schema) in enumerate(zip(tags.tags, schemas, strict=True)):
        trigger = max((t for t in tags.triggers if tag.begin.startswith(t)), key=len)
        number = tags.triggers.index(trigger)
        rest = tag.begin[len(trigger) :]
        body = [f"open{number}", _quote(rest), f"%json {json.dumps(schema)}", _quote(tag.end)]
        lines.append(f"tag{index}: {' '.join(part for part in body if part)}")
        names.append(f"tag{index}")
    for number, trigger in enumerate(tags.triggers):
        lines.append(f"open{number}[lazy]: TEXT {_quote(trigger)}")
    any_tag = "(" + " | ".join(names) + ")"
    start = any_tag + ("+" if tags.at_least_one else "*") + " tail"
    if tags.stop_after_first:
        start = any_tag if tags.at_least_one else f"{any_tag} | tail"
    return f"start: {start}\ntail: TEXT\nTEXT: {TEXT}\n" + "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""


def _triggers(body: Mapping[str, Any], at: str) -> tuple[str, ...]:
    items = _list(body, "triggers", at)
    if not items or not all(isinstance(item, str) and item for item in items):
        raise InvalidRequest(f"'{at}.triggers' must be non-empty strings", param=f"{at}.triggers")
    return tuple(dict.fromkeys(items))


def _list(body: Mapping[str, Any], key: str, at: str) -> list[Any]:
    value = body.get(key)
    if not isinstance(value, list):
        raise InvalidRequest(f"'{at}.{key}' must be an array", param=f"{at}.{key}")
    return value


def _mapping(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"'{at}' must be an object", param=at)
    return value


def _text(body: Mapping[str, Any], key: str, at: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"'{at}.{key}' must be a string", param=f"{at}.{key}")
    return value


def _end(body: Mapping[str, Any], at: str) -> str:
    return _text(body, "end", at) if body.get("end", "") != "" else ""


def _only(body: Mapping[str, Any], at: str, *keys: str) -> None:
    for key in body:
        if key not in keys:
            raise UnknownField(f"{at}.{key}")

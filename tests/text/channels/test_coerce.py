"""Bare text of a parameter becomes the JSON that the tool's schema asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeserve.text.channels.coerce import literal_json, parameter_json


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, " a ", " a "),
        ({"type": "string"}, "null", "null"),
        ({"type": "integer"}, " 5 ", 5),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "5.5", "5.5"),
        ({"type": "integer"}, "five", "five"),
        ({"type": "number"}, "-1.5e3", -1500.0),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "yes", "yes"),
        ({"type": "null"}, "None", None),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "integer"]}, "5", 5),
        ({"type": "array"}, "[1, 'a']", [1, "a"]),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": "object"}, "{'a': True}", {"a": True}),
        ({"type": "object"}, '{"a": NaN}', '{"a": NaN}'),
        ({"type": "object"}, "[1]", "[1]"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"oneOf": [{"$ref": "#/$defs/n"}]}, "7", 7),
        ({"$ref": "#/$defs/loop"}, "7", "7"),
        ({"$ref": "#/$defs/none"}, "7", "7"),
        ({"enum": [1, 2]}, "1", 1),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"const": True}, "true", True),
        ({}, "[1]", "[1]"),
        (True, "1", "1"),
        ({"type": 7}, "1", "1"),
    ],
)
def test_a_value_follows_its_schema(schema: Any, text: str, value: object) -> None:
    root = {
        "properties": {"x": schema},
        "$defs": {"n": {"type": "number"}, "loop": {"$ref": "#/$defs/loop"}},
    }
    told = json.loads(parameter_json(text, "x", root))
    assert (told, type(told)) == (value, type(value))


def test_a_parameter_that_the_schema_does_not_name_is_a_string() -> None:
    assert parameter_json("1", "y", {"properties": {"x": {"type": "integer"}}}) == '"1"'
    assert parameter_json("1", "y", {"properties": None}) == '"1"'


@given(
    st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]),
    st.text() | st.text("[]{}'\":,0123456789.eE-truefalsnNone ", max_size=20),
)
def test_any_text_becomes_json(kind: str, text: str) -> None:
    json.loads(parameter_json(text, "x", {"properties": {"x": {"type": kind}}}), parse_constant=str)


@pytest.mark.parametrize(
    "text", ["f()", "{1, 2}", "b'a'", "{1: 2}", "1e999", "[" * 5000, "1j", "..."]
)
def test_what_json_cannot_say_is_refused(text: str) -> None:
    assert literal_json(text) is None

"""What the surfaces of a body mean, and which mistakes they name."""

from __future__ import annotations

from typing import Any

import pytest

from edgeserve.errors import EdgeserveError
from edgeserve.guide import SOURCE_BYTES
from edgeserve.text.guide.wish import SURFACES, read_wish

SCHEMA = {"type": "integer"}


@pytest.mark.parametrize(
    ("surfaces", "kind", "source", "param"),
    [
        ({"response_format": {"type": "json_object"}}, "json_object", None, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            "json_schema",
            SCHEMA,
            "response_format.json_schema.schema",
        ),
        (
            {"text.format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            "json_schema",
            SCHEMA,
            "text.format.schema",
        ),
        ({"guided_decoding": {"json_object": True}}, "json_object", None, None),
        ({"guided_decoding": {"json_schema": SCHEMA}}, "json_schema", SCHEMA, None),
        ({"guided_decoding": {"json_schema": '{"type":"integer"}'}}, "json_schema", SCHEMA, None),
        ({"guided_decoding": {"regex": "a"}}, "regex", "a", "guided_decoding.regex"),
        ({"guided_decoding": {"ebnf": 'root ::= "a"'}}, "ebnf", 'root ::= "a"', None),
        ({"guided_decoding": {"choice": ["a", "b"]}}, "choice", ["a", "b"], None),
        (
            {"structured_outputs": {"json": SCHEMA}},
            "json_schema",
            SCHEMA,
            "structured_outputs.json",
        ),
        ({"structured_outputs": {"grammar": "x"}}, "ebnf", "x", "structured_outputs.grammar"),
        ({"structured_outputs": {"regex": "a"}, "guided_decoding": {}}, "regex", "a", None),
        (
            {"guided_decoding": {"regex": "a"}, "response_format": {"type": "text"}},
            "regex",
            "a",
            None,
        ),
    ],
)
def test_a_body_asks_for_one_thing(
    surfaces: dict[str, Any], kind: str, source: Any, param: str | None
) -> None:
    wish = read_wish(surfaces)
    assert wish is not None
    assert (wish.kind, wish.source) == (kind, source)
    assert param is None or wish.param == param


@pytest.mark.parametrize(
    "surfaces",
    [
        {},
        dict.fromkeys(SURFACES),
        {"response_format": {"type": "text"}},
        {"guided_decoding": {}},
        {"guided_decoding": {"json_object": False, "regex": "", "choice": [], "ebnf": None}},
        {"guided_decoding": {"jump_forward": True}},
        {"structured_outputs": {"json": None}},
        {"text.format": {"type": "text"}},
    ],
)
def test_nothing_asked_is_nothing_enforced(surfaces: dict[str, Any]) -> None:
    assert read_wish(surfaces) is None


@pytest.mark.parametrize(
    ("surfaces", "param"),
    [
        ({"response_format": 3}, "response_format"),
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": 1}}, "response_format.type"),
        ({"response_format": {"type": "text", "x": 1}}, "response_format.x"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}},
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "name": 3}}},
            "response_format.json_schema.name",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {}, "strict": 1},
                }
            },
            "response_format.json_schema.strict",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "z": 1}}},
            "response_format.json_schema.z",
        ),
        ({"guided_decoding": []}, "guided_decoding"),
        ({"guided_decoding": {"grammar": "x"}}, "guided_decoding.grammar"),
        ({"guided_decoding": {"json_object": 1}}, "guided_decoding.json_object"),
        ({"guided_decoding": {"json_object": "yes"}}, "guided_decoding.json_object"),
        ({"guided_decoding": {"json_schema": 3}}, "guided_decoding.json_schema"),
        ({"guided_decoding": {"json_schema": "{"}}, "guided_decoding.json_schema"),
        ({"guided_decoding": {"json_schema": "[]"}}, "guided_decoding.json_schema"),
        ({"guided_decoding": {"regex": ["a"]}}, "guided_decoding.regex"),
        ({"guided_decoding": {"choice": "a"}}, "guided_decoding.choice"),
        ({"guided_decoding": {"choice": ["a", 1]}}, "guided_decoding.choice[1]"),
        ({"guided_decoding": {"ebnf": 1}}, "guided_decoding.ebnf"),
        ({"guided_decoding": {"regex": "a", "jump_forward": 1}}, "guided_decoding.jump_forward"),
        ({"guided_decoding": {"regex": "a", "choice": ["b"]}}, "guided_decoding.choice"),
        ({"guided_decoding": {"regex": "a" * (SOURCE_BYTES + 1)}}, "guided_decoding.regex"),
        ({"guided_decoding": {"choice": ["é" * SOURCE_BYTES]}}, "guided_decoding.choice"),
        ({"guided_decoding": {"regex": "\ud800"}}, "guided_decoding.regex"),
        ({"structured_outputs": {"json": {}, "regex": "a"}}, "structured_outputs.json"),
        (
            {"response_format": {"type": "json_object"}, "guided_decoding": {"regex": "a"}},
            "guided_decoding",
        ),
        (
            {"guided_decoding": {"regex": "a"}, "structured_outputs": {"regex": "a"}},
            "structured_outputs",
        ),
        (
            {"response_format": {"type": "json_object"}, "text.format": {"type": "json_object"}},
            "text.format",
        ),
    ],
)
def test_a_mistake_is_a_400_that_names_it(surfaces: dict[str, Any], param: str) -> None:
    with pytest.raises(EdgeserveError) as caught:
        read_wish(surfaces)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_jump_forward_goes_with_any_mode() -> None:
    wish = read_wish({"guided_decoding": {"regex": "a", "jump_forward": True}})
    assert wish is not None
    assert wish.jump_forward

"""Whatever a model likes, the text it ends with validates under `jsonschema`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from edgeserve.engine.guides import Follower, Guides
from edgeserve.errors import EdgeserveError, InvalidRequest
from edgeserve.text.guide.maker import GuideMaker
from edgeserve.text.guide.wish import Wish
from tests.text.guide.schemas import ALL, REFUSED, SCHEMAS
from tests.text.guide.walk import walk

REF_N = {"$ref": "#/$defs/N"}
Follow = Callable[..., Follower]


def response_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}


def validator(schema: Any) -> Any:
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return kind(schema)


def test_there_are_enough_schemas() -> None:
    assert len(ALL) >= 200
    assert len(SCHEMAS) >= 20


@pytest.mark.parametrize("schema", [s for _, s in ALL], ids=[name for name, _ in ALL])
def test_any_walk_ends_in_a_valid_value(schema: Any, follow: Follow, guides: Guides) -> None:
    for seed in range(2 if guides.tokenizer.vocab < 1000 else 1):
        follower = follow(response_format=response_format(schema))
        text = walk(follower, guides.tokenizer, seed)
        value = json.loads(text)
        errors = [e.message for e in validator(schema).iter_errors(value)]
        assert not errors, text


@pytest.mark.parametrize(
    ("schema", "keyword", "path"), REFUSED, ids=[f"{k}-{i}" for i, (_, k, _) in enumerate(REFUSED)]
)
def test_what_cannot_be_enforced_is_refused_by_name(
    schema: Any, keyword: str, path: str, maker: GuideMaker
) -> None:
    wish = Wish(kind="json_schema", source=schema, param="response_format.json_schema.schema")
    with pytest.raises(InvalidRequest) as caught:
        maker.make_now(wish)
    assert f"'{keyword}' at {path} cannot be enforced" in caught.value.message
    assert caught.value.param == "response_format.json_schema.schema"
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("schema", "keyword", "path"), REFUSED, ids=[f"{k}-{i}" for i, (_, k, _) in enumerate(REFUSED)]
)
def test_a_tool_that_is_not_strict_is_relaxed_and_told_so(
    schema: Any, keyword: str, path: str, maker: GuideMaker
) -> None:
    relaxed = maker.relaxed_now(schema, "tools[0].function.parameters")
    assert relaxed.statement is not None
    assert f"{keyword} at {path}" in relaxed.statement
    wish = Wish(kind="json_schema", source=relaxed.schema, param="tools")
    maker.make_now(wish)  # what is left can be enforced


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {
            "$defs": {
                "N": {
                    "type": "object",
                    "properties": {"n": {"$ref": "#/$defs/N"}},
                    "required": ["n"],
                }
            },
            "$ref": "#/$defs/N",
        },
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "minItems": 1, "items": {"anyOf": [{"$ref": "#"}, False]}},
        {"type": "nonsense"},
        {"type": "integer", "minimum": "x"},
        {"$ref": "https://example.com/other.json"},
        {"$ref": "#/$defs/missing"},
        {"anyOf": 3},
        {"properties": {"a": 7}},
        {"type": "string", "pattern": "(?=a)b"},
        {"type": "string", "pattern": "("},
        {"type": "number", "multipleOf": 0},
    ],
)
def test_a_schema_that_nothing_or_no_one_can_follow_is_a_400(
    schema: Any, maker: GuideMaker
) -> None:
    with pytest.raises(EdgeserveError) as caught:
        maker.make_now(Wish(kind="json_schema", source=schema, param="p.q"))
    assert (caught.value.status, caught.value.param) == (400, "p.q")
    assert len(caught.value.message) < 500


def test_json_object_is_an_object(follow: Follow, guides: Guides) -> None:
    for seed in range(5):
        text = walk(follow(response_format={"type": "json_object"}), guides.tokenizer, seed)
        assert isinstance(json.loads(text), dict)


def test_numbers_come_to_an_end(byte_guides: Guides, maker: GuideMaker) -> None:
    """A model that always likes a digit best."""
    for schema in ({}, {"type": "number"}, {"type": "integer"}, {"type": "number", "minimum": 0.5}):
        follower = byte_guides.open(
            maker.make_now(Wish(kind="json_schema", source=schema, param="p"))
        )
        text = greedy(byte_guides, follower, b"9.e")
        assert len(text) <= 40, text
        assert json.loads(text) < 1e120


def test_white_space_comes_to_an_end(byte_guides: Guides, maker: GuideMaker) -> None:
    schema = {"type": "array", "items": {"type": "boolean"}, "maxItems": 2, "minItems": 2}
    follower = byte_guides.open(maker.make_now(Wish(kind="json_schema", source=schema, param="p")))
    text = greedy(byte_guides, follower, b"\n \t\r")
    assert len(text) < 400
    assert len(json.loads(text)) == 2


def greedy(guides: Guides, follower: Follower, liked: bytes) -> bytes:
    from tests.text.guide.walk import allowed_ids

    out = b""
    while not follower.is_complete and len(out) < 2000:
        ids = allowed_ids(follower, guides.tokenizer).tolist()
        token = next((b for b in liked if b in ids), ids[0] if ids[0] < 256 else 256)
        if token >= 256 or (256 in ids and token not in liked):
            break
        follower.accept(token)
        out += bytes([token])
    return out

"""Bodies made from the published description, and answers held against it.

`Api` reads `/openapi.json` of a running server. `valid` makes bodies that follow the schema of an
operation, `broken` changes one field of such a body to any JSON. `check` fails for an answer whose
status or body is not described.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.just(0)
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
SMALL = 8  # most numbers are near the lower bound, so that many bodies are taken
Schema = dict[str, Any]


LIKELY = {
    "/v1/chat/completions": {
        "messages": st.lists(
            st.fixed_dictionaries(
                {
                    "role": st.sampled_from(["user", "assistant", "system", "developer"]),
                    "content": TEXT.map(lambda text: text or "x"),
                }
            ),
            min_size=1,
            max_size=3,
        ),
        "top_logprobs": st.none(),
        "stream": st.booleans(),
        "stream_options": st.none(),
    },
    "/v1/completions": {"prompt": TEXT.map(lambda text: text or "x"), "stream_options": st.none()},
    "/tokenize": {"prompt": TEXT, "content": st.none(), "messages": st.none()},
    "/detokenize": {"tokens": st.lists(st.integers(0, 255))},
}


class Api:
    """The description of one server."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.document: Schema = http.get("/openapi.json").json()
        self._validators: dict[str, Any] = {}

    def bodies(self, path: str) -> Schema:
        body = self.document["paths"][path]["post"]["requestBody"]
        return self.resolve(body["content"]["application/json"]["schema"])

    def resolve(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def valid(self, path: str, likely: Any = None, **fixed: Any) -> st.SearchStrategy[Any]:
        """Bodies that follow the schema; `fixed` fields are as given, `likely` ones most times."""
        usual = {} if likely is None else likely
        return st.builds(
            lambda body, more, is_usual: {**body, **(more if is_usual else {}), **fixed},
            self._object(self.bodies(path)),
            st.fixed_dictionaries(usual),
            st.sampled_from([True, True, True, False]),
        )

    def broken(self, path: str, **fixed: Any) -> st.SearchStrategy[Any]:
        names = st.one_of(st.sampled_from(sorted(self.bodies(path)["properties"])), TEXT)
        change = st.dictionaries(names, JSON, min_size=1, max_size=2)
        valid = self.valid(path, LIKELY.get(path), **fixed)
        return st.builds(lambda body, more: {**body, **more}, valid, change)

    def _object(self, schema: Schema) -> st.SearchStrategy[Any]:
        properties, required = schema["properties"], schema.get("required", [])
        optional = sorted(set(properties) - set(required))
        chosen = st.lists(st.sampled_from(optional), max_size=4, unique=True) if optional else None

        def build(names: list[str]) -> st.SearchStrategy[Any]:
            return st.fixed_dictionaries(
                {name: self.values(properties[name]) for name in (*required, *names)}
            )

        return build([]) if chosen is None else chosen.flatmap(build)

    def values(self, schema: Schema) -> st.SearchStrategy[Any]:
        """Values that follow a schema, as far as the description uses the language of schemas."""
        schema = self.resolve(schema)
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "anyOf" in schema:
            kinds = [self.values(one) for one in schema["anyOf"] if one.get("type") != "null"]
            null = [st.none()] if len(kinds) < len(schema["anyOf"]) else []
            return st.one_of([*kinds, *kinds, *null])
        kind = schema.get("type")
        if kind == "object" and "properties" in schema:
            return self._object(schema)
        if kind == "object":
            keys = st.integers(0, 300).map(str) if "propertyNames" in schema else TEXT
            inner = schema.get("additionalProperties", {})
            return st.dictionaries(keys, self.values(inner) if inner else JSON, max_size=3)
        if kind == "array":
            least = schema.get("minItems", 0)
            return st.lists(self.values(schema["items"]), min_size=least, max_size=least + 3)
        return _scalars(kind, schema)

    # Answers ---------------------------------------------------------------------------------

    def check(self, path: str, answer: httpx.Response) -> None:
        """The status is described, and the body is of the schema of this status."""
        responses = self.document["paths"][path]["post"]["responses"]
        status = str(answer.status_code)
        assert status in responses, (status, answer.text)
        media = answer.headers["content-type"].partition(";")[0]
        schema = responses[status]["content"][media]["schema"]
        for body in _bodies(answer, media):
            self.validator(schema).validate(body)

    def validator(self, schema: Schema) -> Any:
        key = json.dumps(schema)
        if key not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            jsonschema.Draft202012Validator.check_schema(whole)
            self._validators[key] = jsonschema.Draft202012Validator(whole)
        return self._validators[key]


def _scalars(kind: str | None, schema: Schema) -> st.SearchStrategy[Any]:
    if kind == "string":
        return TEXT.map(lambda text: text or "x") if schema.get("minLength") else TEXT
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if kind == "integer":
        low, high = schema.get("minimum", -(2**40)), schema.get("maximum", 2**40)
        near = st.integers(int(low), min(int(high), int(low) + SMALL))
        return st.one_of(near, near, near, st.integers(int(low), int(high)))
    if kind == "number":
        above = "exclusiveMinimum" in schema
        low = schema.get("exclusiveMinimum", schema.get("minimum"))
        return st.floats(
            low, schema.get("maximum"), exclude_min=above, allow_nan=False, allow_infinity=False
        )
    assert not kind, kind
    return JSON


def _bodies(answer: httpx.Response, media: str) -> list[Any]:
    if media != "text/event-stream":
        return [answer.json()]
    *frames, done, empty = answer.text.split("\n\n")
    assert (done, empty) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames if frame[0] != ":"]

"""`GET /openapi.json`: what this server serves, as OpenAPI 3.1.

Bodies come from the types that read them, so the description cannot lag behind. What types cannot
say is added from where it is decided: ranges from `edgeserve.sampling`, values that ask for nothing
from `later.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edgeserve.pipeline.messages import ROLES
from edgeserve.protocol.openai.answers import (
    ChatChunk,
    ChatCompletion,
    Detokenized,
    ErrorBody,
    TextCompletion,
    Tokenized,
)
from edgeserve.protocol.openai.chat import ChatRequest
from edgeserve.protocol.openai.completion import MAX_PROMPTS, CompletionRequest
from edgeserve.protocol.openai.harmless import HARMLESS
from edgeserve.protocol.openai.later import LATER, NOTHING
from edgeserve.protocol.openai.request import PRIORITY_BOUND
from edgeserve.protocol.openai.tokenize import DetokenizeRequest, TokenizeRequest
from edgeserve.sampling import INT31, MAX_BIASES, MAX_IDS, MAX_TEXTS, RANGES, Range

Schema = dict[str, Any]

REF = "#/components/schemas/{name}"
JSON, EVENTS, TEXT = "application/json", "text/event-stream", "text/plain"
OBJECT: Schema = {"type": "object"}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one route."""

    path: str
    method: str
    summary: str
    body: Any = None
    answers: Mapping[str, Any] = msgspec.field(default_factory=lambda: {JSON: OBJECT})
    unready: bool = False  # 503 has the same body as 200
    keyed: bool = False
    refusals: tuple[int, ...] = ()


READS = (400, 404, 408, 413)
GATED = (401, 503)
RUNS = (*READS, 429, 504)
BODIES: tuple[type[msgspec.Struct], ...] = (
    ChatRequest,
    CompletionRequest,
    TokenizeRequest,
    DetokenizeRequest,
)
OPERATIONS = (
    Operation(
        path="/v1/chat/completions",
        method="post",
        summary="Answer a conversation, whole or streamed",
        body=ChatRequest,
        answers={JSON: ChatCompletion, EVENTS: ChatChunk},
        keyed=True,
        refusals=RUNS,
    ),
    Operation(
        path="/v1/completions",
        method="post",
        summary="Continue texts or token ids, whole or streamed",
        body=CompletionRequest,
        answers={JSON: TextCompletion, EVENTS: TextCompletion},
        keyed=True,
        refusals=RUNS,
    ),
    Operation(
        path="/tokenize",
        method="post",
        summary="The token ids of a text or a conversation",
        body=TokenizeRequest,
        answers={JSON: Tokenized},
        keyed=True,
        refusals=READS,
    ),
    Operation(
        path="/detokenize",
        method="post",
        summary="The text of token ids",
        body=DetokenizeRequest,
        answers={JSON: Detokenized},
        keyed=True,
        refusals=READS,
    ),
    Operation(path="/v1/models", method="get", summary="The served model's names", keyed=True),
    Operation(
        path="/v1/models/{name}", method="get", summary="One of them", keyed=True, refusals=(404,)
    ),
    Operation(path="/health", method="get", summary="State, load and counters", unready=True),
    Operation(path="/health/live", method="get", summary="Whether the process answers"),
    Operation(
        path="/health/ready", method="get", summary="Whether a request is taken", unready=True
    ),
    Operation(
        path="/metrics",
        method="get",
        summary="Prometheus metrics",
        answers={TEXT: {"type": "string"}},
        refusals=(401,),
    ),
    Operation(path="/openapi.json", method="get", summary="This description"),
    Operation(path="/", method="get", summary="Who answers here"),
)


def document(version: str, names: Sequence[str]) -> Schema:
    """The whole description of a server whose model has these names."""
    kinds = [kind for one in OPERATIONS for kind in (one.body, *one.answers.values())]
    structs = [kind for kind in kinds if isinstance(kind, type)]
    _, schemas = msgspec.json.schema_components([*structs, ErrorBody], ref_template=REF)
    for body in BODIES:
        _narrow(schemas[body.__name__]["properties"])
    _narrow_bodies(schemas)
    for body in BODIES:
        model = schemas[body.__name__]["properties"]["model"]
        model["anyOf"][0] = {"type": "string", "enum": ["", *names]}
    paths: dict[str, Schema] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "edgeserve", "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _operation(one: Operation) -> Schema:
    content = {media: {"schema": _schema(kind)} for media, kind in one.answers.items()}
    responses: Schema = {"200": {"description": "The answer", "content": content}}
    if one.unready:
        responses["503"] = {"description": "Not ready", "content": content}
    for status in sorted({*one.refusals, *(GATED if one.keyed else ())}):
        responses[str(status)] = {
            "description": "An error",
            "content": {JSON: {"schema": _schema(ErrorBody)}},
        }
    found: Schema = {"summary": one.summary, "responses": responses}
    if one.body is not None:
        content = {JSON: {"schema": _schema(one.body)}}
        found["requestBody"] = {"required": True, "content": content}
    if one.keyed:  # a server may have no keys
        found["security"] = [{}, {"bearer": []}, {"header": []}]
    if "{name}" in one.path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        found["parameters"] = [name]
    return found


def _schema(kind: Any) -> Schema:
    if isinstance(kind, type):
        return {"$ref": REF.format(name=kind.__name__)}
    assert isinstance(kind, dict)
    return kind


# What types cannot say ---------------------------------------------------------------------------

IDS = {"minimum": 0, "maximum": INT31}


def _narrow(properties: dict[str, Schema]) -> None:
    """The fields that several bodies share."""
    for name, schema in properties.items():
        is_any = not schema.keys() & {"anyOf", "type", "$ref"}
        if name in HARMLESS and is_any:
            schema["description"] = "Accepted without effect"
        elif is_any and name in LATER:
            values = [None, *NOTHING.get(name, ())]
            schema.update(enum=values, description="Not carried out by this version")
        elif name in RANGES:
            _set(schema, ("integer", "number"), _bounds(RANGES[name]))
    for name in ("bad_words", "stop"):
        if name in properties:
            _set(properties[name], ("array",), {"maxItems": MAX_TEXTS})
    if "bad_words" in properties:
        _items(properties["bad_words"])["minLength"] = 1
        _set(properties["stop_token_ids"], ("array",), {"maxItems": MAX_IDS})
        _items(properties["stop_token_ids"]).update(IDS)
        biases = {"maxProperties": MAX_BIASES, "propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}}
        _set(properties["logit_bias"], ("object",), biases)
        _items(properties["logit_bias"], "additionalProperties").update(_bounds(BIAS))
    if "priority" in properties:
        _set(properties["priority"], ("integer",), {"exclusiveMaximum": PRIORITY_BOUND})
        _set(properties["priority"], ("integer",), {"exclusiveMinimum": -PRIORITY_BOUND})
        _set(properties["cache_salt"], ("string",), {"maxLength": 256})
    if "messages" in properties:
        _set(properties["messages"], ("array",), {"minItems": 1})


def _narrow_bodies(schemas: dict[str, Schema]) -> None:
    """The fields of one body."""
    bounds = _bounds(RANGES["top_logprobs"])
    _set(schemas["CompletionRequest"]["properties"]["logprobs"], ("integer",), bounds)
    prompt = schemas["CompletionRequest"]["properties"]["prompt"]
    ids = {"type": "integer", **IDS}
    prompt["anyOf"] = [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_PROMPTS},
        {"type": "array", "items": ids, "minItems": 1},
        {
            "type": "array",
            "items": {"type": "array", "items": ids, "minItems": 1},
            "minItems": 1,
            "maxItems": MAX_PROMPTS,
        },
    ]
    schemas["DetokenizeRequest"]["properties"]["tokens"]["items"].update(IDS)
    schemas["Message"]["properties"]["role"]["enum"] = list(ROLES)
    schemas["Part"]["properties"]["type"]["enum"] = ["text"]
    schemas["Part"]["properties"]["text"] = {"type": "string"}
    schemas["Part"]["required"] = ["type", "text"]


BIAS = Range(float, -100, 100)


def _bounds(allowed: Range) -> Schema:
    found: Schema = {"exclusiveMinimum" if allowed.above else "minimum": allowed.low}
    if allowed.high < float("inf"):
        found["maximum"] = allowed.high
    return found


def _set(schema: Schema, types: tuple[str, ...], more: Schema) -> None:
    """Add to those alternatives of a schema that are of one of the types."""
    for one in schema.get("anyOf", [schema]):
        if one.get("type") in types:
            one.update(more)


def _items(schema: Schema, key: str = "items") -> Schema:
    """The schema of the items of the array, or of the values of the object."""
    found: Schema = next(one[key] for one in schema.get("anyOf", [schema]) if key in one)
    return found

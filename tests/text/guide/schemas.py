"""JSON schemas grouped by the keyword that they are about, written for these tests."""

from __future__ import annotations

from typing import Any

STR, INT, NUM, BOOL, NULL = (
    {"type": t} for t in ("string", "integer", "number", "boolean", "null")
)
NODE = {
    "type": "object",
    "properties": {
        "v": {"type": "string", "enum": ["a", "b"]},
        "kids": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/N"}},
    },
    "required": ["v", "kids"],
    "additionalProperties": False,
}


def obj(required: Any = None, extra: Any = False, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": extra,
    }


def arr(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


SCHEMAS: dict[str, list[Any]] = {
    "any": [
        {},
        True,
        {"title": "anything"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    ],
    "type": [
        STR,
        INT,
        NUM,
        BOOL,
        NULL,
        {"type": "object"},
        {"type": "array"},
        {"type": ["string", "null"]},
        {"type": ["integer", "boolean", "null"]},
        {"type": ["array", "object"]},
        {"type": ["number", "string"], "minimum": 5, "minLength": 2},
    ],
    "enum": [
        {"enum": ["red", "green", "blue"]},
        {"enum": [1, 2, 3]},
        {"enum": [1.5, -2, 1e3]},
        {"enum": [None, True, "x", 7, [1, 2], {"a": 1}]},
        {"enum": ['quo"te', "back\\slash", "line\nbreak", "tab\t", "\u0001", "é", "😀"]},
        {"enum": [""]},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "enum": ["a", 1, None]},
        {"enum": [{"deep": [{"er": None}]}]},
        {"enum": ["a", "ab", "abc"]},
    ],
    "const": [
        {"const": "x"},
        {"const": 12},
        {"const": -0.5},
        {"const": None},
        {"const": False},
        {"const": [1, "a", {}]},
        {"const": {"a": {"b": []}}},
        obj(kind={"const": "circle"}, r=NUM),
    ],
    "minLength": [
        {"type": "string", "minLength": 1},
        {"type": "string", "minLength": 40},
        {"type": "string", "maxLength": 0},
        {"type": "string", "maxLength": 3},
        {"type": "string", "minLength": 2, "maxLength": 2},
        {"type": "string", "maxLength": 20000},
        {"minLength": 2, "type": "string", "maxLength": 5, "description": "short"},
        {"maxLength": 4},
    ],
    "pattern": [
        {"type": "string", "pattern": "^[a-z]+$"},
        {"type": "string", "pattern": "\\S"},
        {"type": "string", "pattern": "^\\d{3}-\\d{4}$"},
        {"type": "string", "pattern": "^(foo|bar)*$"},
        {"type": "string", "pattern": "a.b"},
        {"type": "string", "pattern": '^[^"\\\\]{2,4}$'},
        {"type": "string", "pattern": "^\\w+@\\w+\\.com$"},
        {"type": "string", "pattern": "^x", "maxLength": 8},
        {"type": "string", "pattern": "^[A-Z]{2}$", "minLength": 1, "maxLength": 5},
        {"type": "string", "pattern": "^$"},
        {"type": "string", "pattern": "^\\s*[+-]?\\d+\\s*$"},
        {"type": "string", "pattern": "^(\\([0-9]{3}\\))?[0-9]{3}-[0-9]{4}$"},
        {"pattern": "^a+$"},
        {"type": "string", "pattern": "^[\\u00e0-\\u00ff]{2}$"},
    ],
    "format": [
        {"type": "string", "format": name}
        for name in (
            *("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6"),
            *("uri", "uuid", "json-pointer", "relative-json-pointer", "uri-reference"),
            *("uri-template", "password"),
        )
    ]
    + [
        {"type": "integer", "format": "int32"},
        {"type": "integer", "format": "int64", "minimum": 0},
        {"type": "number", "format": "double"},
        {"type": "string", "format": "uri-reference", "pattern": "^/"},
    ],
    "minimum": [
        {"type": "integer", "minimum": 0},
        {"type": "integer", "maximum": -5},
        {"type": "integer", "minimum": 10, "maximum": 12},
        {"type": "integer", "minimum": -100, "maximum": 100},
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3},
        {"type": "number", "minimum": 0},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "exclusiveMaximum": 123456},
        {"type": "number", "minimum": -1.25, "maximum": -1.2},
        {"type": "number", "exclusiveMinimum": 99.9, "maximum": 100.1},
        {"type": "integer", "minimum": 1, "maximum": 65535},
        {"type": "integer", "minimum": 2.5, "maximum": 7.5},
        {"minimum": 3},
        {"type": "integer", "minimum": 7, "maximum": 7},
        {"type": "integer", "minimum": 10**12},
    ],
    "multipleOf": [
        {"type": "integer", "multipleOf": 7},
        {"type": "integer", "multipleOf": 10, "minimum": 5, "maximum": 95},
        {"type": "number", "multipleOf": 0.5},
        {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 2},
        {"type": "integer", "multipleOf": 1},
        {"type": "integer", "multipleOf": 12, "minimum": 0, "maximum": 1000},
    ],
    "items": [
        arr(STR),
        arr(INT),
        arr({"type": "array", "items": NUM}),
        arr({}),
        arr(False),
        arr(True, maxItems=2),
        arr(obj(a=INT)),
        arr({"anyOf": [STR, NULL]}, minItems=1),
        {"items": BOOL},
    ],
    "prefixItems": [
        {"type": "array", "prefixItems": [STR, INT]},
        {"type": "array", "prefixItems": [STR, INT], "items": False},
        {"type": "array", "prefixItems": [STR], "items": BOOL},
        {"type": "array", "prefixItems": [STR, INT], "minItems": 2, "items": False},
        {"type": "array", "prefixItems": [BOOL], "minItems": 3, "maxItems": 4},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [STR, INT],
            "additionalItems": False,
        },
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [STR],
            "additionalItems": INT,
            "minItems": 2,
        },
    ],
    "minItems": [
        arr(INT, minItems=1),
        arr(INT, maxItems=0),
        arr(BOOL, minItems=2, maxItems=2),
        arr(STR, minItems=1, maxItems=3),
        arr(BOOL, minItems=20),
        {"type": "array", "maxItems": 5000, "items": STR},
        {"minItems": 1, "type": "array"},
        arr(arr(BOOL, minItems=1, maxItems=2), minItems=1, maxItems=2),
        arr(INT, uniqueItems=False),
        arr(INT, uniqueItems=True, maxItems=1),
    ],
    "properties": [
        obj(a=STR),
        obj(a=STR, b=INT, c=BOOL),
        obj([], a=STR, b=INT),
        obj(["b"], a=STR, b=INT, c=NULL),
        {"type": "object", "properties": {"a": INT}},
        {"properties": {"a": INT}, "required": ["a"]},
        obj(**{'we"ird': INT, "ta\tb": BOOL, "é": NULL}),
        obj(a=obj(b=obj(c=arr(INT)))),
        obj(minimum=STR, uniqueItems=INT, format=BOOL, contains=NULL),
        {"type": "object", "properties": {"a": True, "b": False}},
        obj(["a"], a={}, b={}),
        {"type": "object", "required": ["x", "y"], "additionalProperties": INT},
        obj(**{"$ref": STR, "properties": INT}),
        obj([], **{f"p{i}": BOOL for i in range(30)}),
    ],
    "additionalProperties": [
        {"type": "object", "additionalProperties": INT},
        {"type": "object", "additionalProperties": {"not": {}}},
        {"type": "object", "additionalProperties": False},
        obj(["a"], extra=STR, a=INT),
        obj(["a"], extra=True, a=INT),
        {"type": "object", "additionalProperties": obj(x=NUM)},
        {"type": "object", "properties": {"a": INT}, "additionalProperties": {"enum": [1, "x"]}},
        {"type": "object", "unevaluatedProperties": False, "properties": {"k": BOOL}},
    ],
    "patternProperties": [
        {"type": "object", "patternProperties": {"^s_": STR}, "additionalProperties": False},
        {"type": "object", "patternProperties": {"^s_": STR, "^i_": INT}},
        {
            "type": "object",
            "properties": {"id": INT},
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
            "required": ["id"],
        },
        {"type": "object", "patternProperties": {"^[a-z]{2}$": NUM}, "additionalProperties": False},
    ],
    "minProperties": [
        {"type": "object", "maxProperties": 2},
        {"type": "object", "minProperties": 1, "additionalProperties": INT},
        {"type": "object", "maxProperties": 0},
        {**obj(a=INT, b=INT), "minProperties": 2},
        {"type": "object", "minProperties": 0},
        {**obj([], a=INT, b=STR), "minProperties": 1},
    ],
    "anyOf": [
        {"anyOf": [STR, INT]},
        {"anyOf": [obj(a=INT), obj(b=STR)]},
        {
            "anyOf": [
                {"type": "string", "maxLength": 2},
                {"type": "string", "pattern": "^[0-9]{5}$"},
            ]
        },
        {"anyOf": [NULL, arr(INT)]},
        {"type": "integer", "anyOf": [{"minimum": 100}, {"maximum": -100}]},
        {"anyOf": [{"const": 1}, {"const": "1"}]},
        obj(a={"anyOf": [obj(k={"const": 1}, x=INT), obj(k={"const": 2}, y=STR), NULL]}),
        {"anyOf": [INT, False]},
        {
            "properties": {"c": INT},
            "type": "object",
            "anyOf": [{"required": ["c"]}, {"required": ["d"]}],
        },
        {"anyOf": [{"anyOf": [INT, BOOL]}, {"anyOf": [NULL]}]},
    ],
    "oneOf": [
        {"oneOf": [STR, INT]},
        {"oneOf": [{"const": "a"}, {"const": "b"}]},
        {"oneOf": [obj(kind={"const": "c"}, r=NUM), obj(kind={"const": "s"}, side=NUM)]},
        {"oneOf": [NULL, arr(BOOL), {"type": "object"}]},
        {"oneOf": [{"enum": ["x", "y"]}, INT]},
        arr({"oneOf": [BOOL, NULL]}, minItems=1),
    ],
    "allOf": [
        {"allOf": [STR, {"minLength": 3}]},
        {"allOf": [{"minimum": 5}, {"maximum": 8}], "type": "integer"},
        {
            "allOf": [
                {"type": "object", "properties": {"a": INT}, "required": ["a"]},
                {"type": "object", "properties": {"b": STR}, "required": ["b"]},
            ]
        },
        {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]},
        {"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]},
        {
            "allOf": [{"$ref": "#/$defs/A"}, {"maxLength": 6}],
            "$defs": {"A": {"type": "string", "minLength": 2}},
        },
        {"allOf": [{"anyOf": [STR, INT]}, {"anyOf": [INT, NULL]}]},
        {"allOf": [{}]},
        {"type": "string", "allOf": [{"pattern": "^a"}, {"maxLength": 5}]},
    ],
    "$ref": [
        {"$defs": {"N": NODE}, "$ref": "#/$defs/N"},
        {"definitions": {"A": INT}, "type": "array", "items": {"$ref": "#/definitions/A"}},
        obj(a=obj(left=INT), b={"$ref": "#/properties/a/properties/left"}),
        {
            "type": "object",
            "properties": {"v": INT, "next": {"$ref": "#"}},
            "required": ["v"],
            "additionalProperties": False,
        },
        {
            "$defs": {"a/b": STR, "c~d": INT},
            "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c~0d"}],
        },
        {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": BOOL}, "$ref": "#/$defs/A"},
        {
            "$defs": {
                "T": {"anyOf": [NULL, obj(l={"$ref": "#/$defs/T"}, r={"$ref": "#/$defs/T"})]}
            },
            "$ref": "#/$defs/T",
        },
        {
            "$defs": {"E": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/E"}}},
            "$ref": "#/$defs/E",
        },
        {"$defs": {"A": {"$anchor": "here", "type": "string"}}, "$ref": "#here"},
        {
            "$defs": {"P": obj(n=INT)},
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/P"}, NULL]},
        },
        {"$id": "https://example.com/s", "$defs": {"A": INT}, "$ref": "#/$defs/A"},
        {"$defs": {"unused": {"contains": {}}}, "type": "integer"},
        {
            "$defs": {"A": {"type": "integer"}},
            "properties": {"x": {"$ref": "#/$defs/A", "minimum": 3}},
            "required": ["x"],
            "type": "object",
        },
        {
            "$defs": {
                "X": obj([], y={"$ref": "#/$defs/Y"}),
                "Y": obj([], x={"$ref": "#/$defs/X"}, n=INT),
            },
            "$ref": "#/$defs/X",
        },
    ],
    "annotations": [
        {"type": "string", "title": "T", "description": "D", "default": "x", "examples": ["a"]},
        {"type": "integer", "deprecated": True, "readOnly": True, "writeOnly": False},
        {"type": "string", "x-foo": {"any": 1}, "$comment": "c"},
        {"type": "string", "nullable": True},
        {"type": "string", "contentEncoding": "base64", "contentMediaType": "text/plain"},
        {"type": "object", "discriminator": {"propertyName": "k"}, "properties": {"k": STR}},
        {"x-guidance": {"lenient": True, "whitespace_flexible": False}, "type": "integer"},
        {"type": "string", "not": False},
        {"type": "object", "propertyNames": {"type": "string"}},
        {"type": "integer", "if": {"minimum": 3}},
        {"type": "array", "minContains": 2},
        {"type": "object", "dependentRequired": {}},
    ],
    "tools": [  # as agents and libraries send them
        obj(
            ["path"],
            path={"type": "string", "description": "file"},
            line={"anyOf": [INT, NULL], "default": None, "title": "Line"},
            mode={"enum": ["r", "w"], "type": "string"},
        ),
        obj(
            steps=arr(obj(explanation=STR, output=STR)),
            final_answer=STR,
        ),
        obj(
            location=STR,
            unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
            days={"type": "integer", "minimum": 1, "maximum": 14},
        ),
        {
            "title": "Invoice",
            "$defs": {"Line": obj(sku={"type": "string", "pattern": "^[A-Z]{3}[0-9]{3}$"}, n=INT)},
            **obj(
                id={"type": "string", "format": "uuid"},
                when={"type": "string", "format": "date"},
                lines=arr({"$ref": "#/$defs/Line"}, minItems=1, maxItems=3),
                total={"type": "number", "minimum": 0},
            ),
        },
        obj(
            ["nested"],
            extra=True,
            nested=obj(
                s={"type": "string", "pattern": "^[a-z]+$"},
                t={"type": "string", "pattern": "\\S"},
                u={"type": "string", "maxLength": 20000},
                v={"type": "array", "maxItems": 5000},
            ),
        ),
        obj(query=STR, filters={"type": "object", "additionalProperties": arr(STR)}),
        obj(edits=arr(obj(["old", "new"], old=STR, new=STR, all=BOOL), minItems=1)),
        obj(score={"type": "number", "minimum": 0, "maximum": 10}, ok=BOOL, why=STR),
        obj(entities=arr(obj(name=STR, type={"enum": ["person", "place", "org"]}), maxItems=4)),
        obj(lat={"type": "number", "minimum": -90, "maximum": 90}, lon=NUM),
    ],
}

ALL = [
    (f"{keyword}-{index}", schema)
    for keyword, schemas in SCHEMAS.items()
    for index, schema in enumerate(schemas)
]

# Schema, the keyword that the refusal names, and where.
REFUSED: list[tuple[Any, str, str]] = [
    (arr(INT, uniqueItems=True), "uniqueItems", "#"),
    (obj(a={"type": "array", "contains": INT}), "contains", "#/properties/a"),
    ({"not": {"type": "string"}}, "not", "#"),
    (obj(a=obj(b={"not": STR})), "not", "#/properties/a/properties/b"),
    ({"if": STR, "then": {"minLength": 3}}, "if", "#"),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired", "#"),
    ({"type": "object", "dependentSchemas": {"a": STR}}, "dependentSchemas", "#"),
    ({"type": "object", "propertyNames": {"pattern": "^a"}}, "propertyNames", "#"),
    ({"type": "array", "unevaluatedItems": False}, "unevaluatedItems", "#"),
    ({"type": "object", "minProperties": 3}, "minProperties", "#"),
    ({"type": "string", "format": "iri"}, "format", "#"),
    ({"anyOf": [INT, {"type": "string", "format": "nonsense"}]}, "format", "#/anyOf/1"),
    ({"oneOf": [NUM, INT]}, "oneOf", "#"),
    (arr({"oneOf": [{"minLength": 2, **STR}, STR]}), "oneOf", "#/items"),
    ({"$dynamicRef": "#x"}, "$dynamicRef", "#"),
    (
        {"$defs": {"A": arr(INT, uniqueItems=True)}, "$ref": "#/$defs/A"},
        "uniqueItems",
        "#/$defs/A",
    ),
    (
        {"allOf": [{"unevaluatedProperties": False, "anyOf": [{}]}]},
        "unevaluatedProperties",
        "#/allOf/0",
    ),
]

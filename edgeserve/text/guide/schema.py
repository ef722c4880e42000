"""A JSON schema made ready for the grammar: what changes nothing goes, what can be said in other
words is, and each keyword that cannot be enforced is reported with its path.

Enforced by `llguidance` itself: types, enum, const, the applicators, references, bounds, patterns.
A keyword that is none of JSON Schema's is an annotation, as the standard says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from edgeserve.errors import InvalidRequest

Schema = dict[str, Any] | bool
DEPTH = 100  # of nested subschemas

_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE = ("additionalProperties", "additionalItems", "items")
_FORMATS = frozenset(
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid")
)
_FORMAT_PATTERNS = {  # RFC 6901, RFC 3986 and RFC 6570 without their rarest forms
    "json-pointer": r"^(/([^/~]|~[01])*)*$",
    "relative-json-pointer": r"^(0|[1-9][0-9]{0,8})(#|(/([^/~]|~[01])*)*)$",
    "uri-reference": r"^([A-Za-z][A-Za-z0-9+.-]*:)?[A-Za-z0-9._~/?=&-]*(#[A-Za-z0-9._~/-]*)?$",
    "uri-template": r"^([A-Za-z0-9._~:/?=&-]|\{[A-Za-z_][A-Za-z0-9_]*\})*$",
}
_FREE_FORMATS = frozenset(["float", "double", "password"])  # OpenAPI's; they forbid nothing
_INTEGERS = {"int32": 2**31, "int64": 2**63}


class Finding(NamedTuple):
    """A keyword that the grammar cannot enforce."""

    path: str  # JSON pointer of the schema that has it, from #
    keyword: str
    why: str

    def __str__(self) -> str:
        return f"'{self.keyword}' at {self.path} cannot be enforced: {self.why}"


class Prepared(NamedTuple):
    """`schema` has none of the keywords in `findings`: enforcing it is enforcing less."""

    schema: Schema
    findings: tuple[Finding, ...]


def prepare(schema: Any, *, param: str) -> Prepared:
    """Raises InvalidRequest for what is no schema at all."""
    walk = _Walk(param)
    ready = walk.schema(schema, "#", 0)
    if isinstance(ready, dict):
        ready.pop("x-guidance", None)  # options of the grammar engine are not the client's
    findings = [f for f in walk.findings if walk.is_used(f.path)]
    return Prepared(ready, tuple(findings))


class _Walk:
    def __init__(self, param: str) -> None:
        self.findings: list[Finding] = []
        self._param = param
        self._refs: set[str] = set()

    def is_used(self, path: str) -> bool:
        """Whether a subschema counts: one in `$defs` that nothing refers to does not."""
        steps = path.split("/")
        if len(steps) < 3 or steps[1] not in ("$defs", "definitions"):
            return True
        root = "/".join(steps[:3])
        named = any(ref == root or ref.startswith(root + "/") for ref in self._refs)
        return named or any(not ref.startswith("#/") and ref != "#" for ref in self._refs)

    def schema(self, node: Any, path: str, depth: int) -> Schema:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise InvalidRequest(f"{path} must be an object or a boolean", param=self._param)
        if depth > DEPTH:
            raise InvalidRequest(
                f"the schema is nested more than {DEPTH} levels deep", param=self._param
            )
        if isinstance(ref := node.get("$ref"), str):
            self._refs.add(ref)
        out: dict[str, Any] = {}
        also: list[Any] = []
        for key, value in node.items():
            rule = _RULES.get(key)
            if rule is None:
                out[key] = self._inner(key, value, path, depth)
                continue
            change = rule(node, value)
            if isinstance(change, str):
                self.findings.append(Finding(path, key, change))
            elif isinstance(change, bool):
                return False
            else:
                _merge(out, also, change, node)
        if also:
            out["allOf"] = [*out.get("allOf", ()), *also]
        return out

    def _inner(self, key: str, value: Any, path: str, depth: int) -> Any:
        here = f"{path}/{key}"
        if key in _MAPS and isinstance(value, dict):
            return {
                name: self.schema(item, f"{here}/{_escape(name)}", depth + 1)
                for name, item in value.items()
            }
        if key in _LISTS or (key == "items" and isinstance(value, list)):
            if not isinstance(value, list):
                raise InvalidRequest(f"{here} must be an array", param=self._param)
            return [self.schema(item, f"{here}/{i}", depth + 1) for i, item in enumerate(value)]
        if key in _SINGLE:
            return self.schema(value, here, depth + 1)
        return value


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _merge(
    out: dict[str, Any], also: list[Any], change: Mapping[str, Any], node: Mapping[str, Any]
) -> None:
    """Add rewritten keywords; beside one of the same name both hold."""
    for key, value in change.items():
        if key in node and key not in ("format", "minProperties"):
            also.append({key: value})
        else:
            out[key] = value


# Rules: given the schema and the keyword's value, what to say instead; False: nothing is valid;
# a string: why it cannot be enforced. ------------------------------------------------------------

Change = dict[str, Any] | Literal[False] | str
_NOTHING: dict[str, Any] = {}


def _never(why: str) -> Callable[[Mapping[str, Any], Any], Change]:
    return lambda _node, _value: why


def _not(_node: Mapping[str, Any], value: Any) -> Change:
    if value is True or value == {}:
        return False
    return _NOTHING if value is False else "a grammar cannot exclude what a schema describes"


def _unique(node: Mapping[str, Any], value: Any) -> Change:
    most = node.get("maxItems")
    if value is False or (isinstance(most, int) and most <= 1):
        return _NOTHING
    return "a grammar does not remember earlier items"


def _contains_bound(node: Mapping[str, Any], _value: Any) -> Change:
    return "a grammar does not count matching items" if "contains" in node else _NOTHING


def _if(node: Mapping[str, Any], _value: Any) -> Change:
    return "write the cases as 'anyOf'" if {"then", "else"} & set(node) else _NOTHING


def _then(_node: Mapping[str, Any], _value: Any) -> Change:
    return _NOTHING  # means something beside 'if' alone, which is reported


def _names(_node: Mapping[str, Any], value: Any) -> Change:
    if value is True or value in ({}, {"type": "string"}):
        return _NOTHING
    return "use 'patternProperties' with 'additionalProperties': false"


def _dependent(_node: Mapping[str, Any], value: Any) -> Change:
    return "write the cases as 'anyOf'" if value else _NOTHING


def _unevaluated_properties(node: Mapping[str, Any], value: Any) -> Change:
    if value is True or value == {} or "additionalProperties" in node:
        return _NOTHING
    if not {"anyOf", "allOf", "oneOf", "$ref", "if", "dependentSchemas"} & set(node):
        return {"additionalProperties": value} if isinstance(value, bool) else "use a boolean"
    return "use 'additionalProperties' in each branch"


def _unevaluated_items(_node: Mapping[str, Any], value: Any) -> Change:
    return _NOTHING if value is True or value == {} else "use 'items'"


def _format(node: Mapping[str, Any], value: Any) -> Change:
    if value in _FREE_FORMATS or not isinstance(value, str):
        return _NOTHING
    if value in _FORMATS:
        return {"format": value}
    if value in _FORMAT_PATTERNS:
        return {"pattern": _FORMAT_PATTERNS[value]}
    if value in _INTEGERS and node.get("type") in ("integer", "number"):
        bound = _INTEGERS[value]
        return {"minimum": -bound, "maximum": bound - 1}
    return f"format '{value}' is not known"


def _least_properties(node: Mapping[str, Any], value: Any) -> Change:
    required = node.get("required")
    names = len(set(map(str, required))) if isinstance(required, list) else 0
    if isinstance(value, (int, float)) and value <= names:
        return _NOTHING
    if value == 1:
        return {"minProperties": 1}
    return "a grammar does not see that two names differ; list them in 'required'"


_RULES: dict[str, Callable[[Mapping[str, Any], Any], Change]] = {
    "not": _not,
    "uniqueItems": _unique,
    "contains": _never("a grammar does not count matching items"),
    "minContains": _contains_bound,
    "maxContains": _contains_bound,
    "if": _if,
    "then": _then,
    "else": _then,
    "propertyNames": _names,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "dependencies": _dependent,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
    "$dynamicRef": _never("use '$ref'"),
    "$recursiveRef": _never("use '$ref'"),
    "format": _format,
    "minProperties": _least_properties,
}

"""Whether a value of a schema can come to an end: a schema that requires itself never does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CONTAINERS = ("object", "array")
UNKNOWN = object()


def can_end(schema: Any) -> bool:
    """False only when it is certain: each value of `schema` would hold another one, for ever."""
    targets = {ref: _target(schema, ref) for ref in _refs(schema)}
    proven = {ref for ref, target in targets.items() if target is UNKNOWN}
    while True:
        more = {ref for ref, node in targets.items() if ref not in proven and _ends(node, proven)}
        if not more:
            return _ends(schema, proven)
        proven |= more


def _ends(node: Any, proven: set[str]) -> bool:
    if not isinstance(node, dict):
        return node is not False
    if isinstance(ref := node.get("$ref"), str) and ref not in proven:
        return False
    if not all(_ends(part, proven) for part in _items(node, "allOf")):
        return False
    for key in ("anyOf", "oneOf"):
        branches = _items(node, key)
        if branches and not any(_ends(branch, proven) for branch in branches):
            return False
    if "const" in node or "enum" in node:
        return True
    kinds = node.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if any(kind not in _CONTAINERS for kind in kinds):
        return True
    ways = {"object": _object_ends, "array": _array_ends}
    return any(ways[kind](node, proven) for kind in kinds)


def _object_ends(node: Mapping[str, Any], proven: set[str]) -> bool:
    properties = node.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    other = True if "patternProperties" in node else node.get("additionalProperties", True)
    names = [name for name in _items(node, "required") if isinstance(name, str)]
    return all(_ends(properties.get(name, other), proven) for name in names)


def _array_ends(node: Mapping[str, Any], proven: set[str]) -> bool:
    least = node.get("minItems", 0)
    if not isinstance(least, int) or least <= 0:
        return True
    first = _items(node, "prefixItems")[:least]
    rest = node.get("items", True) if least > len(first) else True
    rest = True if isinstance(rest, list) else rest
    return all(_ends(item, proven) for item in first) and _ends(rest, proven)


def _items(node: Mapping[str, Any], key: str) -> list[Any]:
    value = node.get(key)
    return value if isinstance(value, list) else []


def _refs(schema: Any) -> set[str]:
    found, todo = set(), [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(ref := node.get("$ref"), str):
                found.add(ref)
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    return found


def _target(schema: Any, ref: str) -> Any:
    """What a reference inside the document points to; UNKNOWN for any other."""
    if ref != "#" and not ref.startswith("#/"):
        return UNKNOWN
    node = schema
    for step in ref.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        else:
            return UNKNOWN
    return node

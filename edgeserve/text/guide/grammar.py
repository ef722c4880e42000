"""From a `Wish` to the text of a grammar. Quick and pure; `checker.py` proves that it works."""

from __future__ import annotations

import json
from typing import Any

from llguidance import LLMatcher, regex_to_lark

from edgeserve.errors import InvalidRequest, UnsupportedFeature
from edgeserve.text.guide.ebnf import BadGrammar, read_ebnf
from edgeserve.text.guide.ending import can_end
from edgeserve.text.guide.lark import escape_regex, to_lark
from edgeserve.text.guide.schema import Finding, Schema, prepare
from edgeserve.text.guide.tags import read_tags, tags_to_lark
from edgeserve.text.guide.wish import Wish

# Between the tokens of JSON: a space, or a line break and an indent. Bounded, or a model that
# likes white space would never come to an end.
WHITESPACE = r"[ ]|\r?\n[ \t]{0,40}"
ANY_OBJECT: dict[str, Any] = {"type": "object"}


def make_grammar(wish: Wish) -> str:
    """Raises InvalidRequest; UnsupportedFeature names a keyword that cannot be enforced."""
    source, at = wish.source, wish.param
    if wish.kind == "json_object":
        return json_grammar(ANY_OBJECT)
    if wish.kind == "json_schema":
        return json_grammar(enforceable(source, at))
    if wish.kind == "regex":
        return _lark(f"start: /{_regex(source, at)}/\n")
    if wish.kind == "choice":
        options = "|".join("".join(map(escape_regex, text)) for text in dict.fromkeys(source))
        return _lark(f"start: /(?:{options})/\n" if options else 'start: ""\n')
    if wish.kind == "structural_tag":
        tags = read_tags(source, at)
        schemas = [inline(enforceable(tag.schema, tag.at)) for tag in tags.tags]
        return _lark(tags_to_lark(tags, schemas))
    return _ebnf(source, at)


def enforceable(schema: Any, at: str) -> Schema:
    """The schema made ready; a 400 when a keyword of it cannot be enforced."""
    ready = prepare(schema, param=at)
    if ready.findings:
        raise UnsupportedFeature(f"{at}: {ready.findings[0]}", param=at)
    if ready.schema is False:
        raise InvalidRequest(f"'{at}' cannot be enforced: nothing satisfies it", param=at)
    if not can_end(ready.schema):
        why = "it requires itself, so no value of it ever ends"
        raise InvalidRequest(f"'{at}' cannot be enforced: {why}", param=at)
    return ready.schema


def json_grammar(schema: Schema) -> str:
    text = json.dumps(_object(schema))
    return LLMatcher.grammar_from_json_schema(text, overrides={"whitespace_pattern": WHITESPACE})


def oneof_paths(schema: Schema) -> list[Finding]:
    """Each `oneOf`: which of them are not provably exclusive the library does not say."""
    found: list[Finding] = []
    todo: list[tuple[Any, str]] = [(schema, "#")]
    while todo:
        node, path = todo.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            if key == "oneOf" and isinstance(value, list):
                why = "its branches are not plainly exclusive; use 'anyOf'"
                found.append(Finding(path, "oneOf", why))
            if isinstance(value, (dict, list)) and key not in ("enum", "const", "default"):
                todo.append((value, f"{path}/{key}"))
    return found


def _object(schema: Schema) -> dict[str, Any]:
    if isinstance(schema, bool):
        return {} if schema else {"enum": []}
    return schema


def inline(schema: Schema) -> Schema:
    """A schema as part of a larger grammar."""
    return {**_object(schema), "x-guidance": {"whitespace_pattern": WHITESPACE}}


def _regex(source: str, at: str) -> str:
    """With ^ and $ at its ends dropped (the whole text is matched anyway), classes as in ASCII."""
    body = source[1:] if source.startswith("^") and not _has_top_bar(source) else source
    if body.endswith("$") and not _has_top_bar(source):
        slashes = len(body) - 1 - len(body[:-1].rstrip("\\"))
        body = body[:-1] if slashes % 2 == 0 else body
    try:
        return regex_to_lark(body, "dws")
    except ValueError as error:
        raise InvalidRequest(f"'{at}' is not a regex: {error}", param=at) from None


def _has_top_bar(regex: str) -> bool:
    depth, in_class, escaped = 0, False, False
    for char in regex:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            return True
    return False


def _ebnf(source: str, at: str) -> str:
    try:
        return _lark(to_lark(read_ebnf(source)))
    except BadGrammar as error:
        raise InvalidRequest(f"'{at}' is not a grammar: {error}", param=at) from None
    except RecursionError:
        raise InvalidRequest(f"'{at}' is nested too deeply", param=at) from None


def _lark(text: str) -> str:
    return LLMatcher.grammar_from_lark(text)

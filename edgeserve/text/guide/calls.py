"""A grammar of nothing but tool calls, in the words of a model's wire format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from llguidance import LLMatcher

from edgeserve.text.channels.wire import CallGrammar, Slot
from edgeserve.text.guide.grammar import inline
from edgeserve.text.guide.schema import Schema

MOST_CALLS = 32  # of one answer, so that a model that likes calls comes to an end
NO_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}


class Target(NamedTuple):
    """A tool that may be called; its schema can be enforced."""

    name: str
    schema: Schema


def calls_grammar(
    wire: CallGrammar,
    tools: Sequence[Target],
    special: Callable[[str], int | None],
    *,
    several: bool,
) -> str:
    """`special`: the id of a text that is a special token; only as that token it can be written."""
    lines = _Lines(wire, special)
    calls = " | ".join(lines.call(index, tool) for index, tool in enumerate(tools))
    more = f"({lines.quoted(wire.separator)} call){{0,{MOST_CALLS - 1}}}" if several else ""
    start = _joined(lines.quoted(wire.begin), "call", more, lines.quoted(wire.end))
    text = f"start: {start}\ncall: {calls}\n" + "".join(f"{line}\n" for line in lines.rules)
    return LLMatcher.grammar_from_lark(text)


class _Lines:
    def __init__(self, wire: CallGrammar, special: Callable[[str], int | None]) -> None:
        self.rules: list[str] = []
        self._wire = wire
        ids = {text: special(text) for text in wire.special}
        self._ids = {text: id for text, id in ids.items() if id is not None}
        self._cut = re.compile("(" + "|".join(map(re.escape, self._ids)) + ")" if ids else r"(?!)")

    def quoted(self, text: str) -> str:
        """The text as a grammar has it; special tokens by their ids."""
        parts = self._cut.split(text) if self._ids else [text]
        return _joined(*(self._part(part) for part in parts))

    def _part(self, text: str) -> str:
        if text in self._ids:
            return f"<[{self._ids[text]}]>"
        return json.dumps(text, ensure_ascii=False) if text else ""

    def call(self, index: int, tool: Target) -> str:
        name = f"call{index}"
        wire = self._wire
        if wire.slot is Slot.XML:
            slot = self._parameters(name, tool.schema)
        else:
            slot = f"%json {json.dumps(inline(tool.schema))}"
        around = (self.quoted(wire.opening(tool.name)), slot, self.quoted(wire.close))
        self.rules.append(f"{name}: {_joined(*around)}")
        return name

    def _parameters(self, call: str, schema: Schema) -> str:
        properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
        required = schema.get("required", ()) if isinstance(schema, dict) else ()
        parts = []
        for index, (key, value) in enumerate(properties.items()):
            rule = f"{call}_{index}"
            opening = self.quoted(self._wire.parameter_opening(key))
            self.rules.append(f"{rule}: {opening} {self._value(rule, value, schema)}")
            parts.append(rule if key in required else f"{rule}?")
        return " ".join(parts)

    def _value(self, rule: str, value: Any, root: Any) -> str:
        """Bare text for a string and for what may be one; else JSON."""
        close = self.quoted(self._wire.parameter_close)
        kind = value.get("type") if isinstance(value, Mapping) else None
        options = value.get("enum") if isinstance(value, Mapping) else None
        if kind == "string" and isinstance(options, list):
            texts = " | ".join(self.quoted(text) for text in options if text)
            return f"({texts}) {close}"
        if kind in ("integer", "number", "boolean", "null", "array", "object"):
            definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
            return f"%json {json.dumps(inline({**definitions, **value}))} {close}"
        self.rules.append(f"{rule}_text[lazy]: /(?s:.*)/ {close}")
        return f"{rule}_text"


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)

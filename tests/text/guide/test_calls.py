"""Calls that a guide wrote are what the parser of their format reads, and fit their schemas."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from edgeserve.engine.guides import Follower, Guides
from edgeserve.guide import Guide
from edgeserve.text.channels import TOOL_PARSERS, Slot, call_grammar
from edgeserve.text.guide.calls import Target, calls_grammar
from tests.text.channels.folding import run
from tests.text.channels.sample import Sample
from tests.text.guide.walk import allowed_ids, byte_tokenizer, walk

SCHEMAS: dict[str, dict[str, Any]] = {
    "edit": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "maxLength": 8},
            "mode": {"type": "string", "enum": ["ro", "rw"]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "maxItems": 2},
            "force": {"type": "boolean"},
        },
        "required": ["path", "mode"],
        "additionalProperties": False,
        "$defs": {"line": {"type": "integer", "minimum": 0, "maximum": 99}},
    },
    "list": {"type": "object", "properties": {}, "additionalProperties": False},
}
FORCED = [
    name
    for name in TOOL_PARSERS
    if name != "harmony" and call_grammar(name).slot is not Slot.PYTHON
]


def written(follower: Follower, guides: Guides, name: str, seed: int) -> bytes:
    """A random text; bare values are closed soon, which a random walk never does."""
    close = list(call_grammar(name).parameter_close.encode())
    if not close:
        return walk(follower, guides.tokenizer, seed)
    rng, out = random.Random(seed), b""
    while not follower.is_complete:
        if rng.random() < 0.3 and follower.allowed(close) == len(close):
            ids = close
        else:
            few = [i for i in allowed_ids(follower, guides.tokenizer).tolist() if i < 256]
            ids = [rng.choice(few)] if few else []
        if not ids or (follower.may_end and rng.random() < 0.5):
            break
        for token in ids:
            follower.accept(token)
        assert follower.failed is None, out
        out += bytes(ids)
    assert follower.may_end
    return out


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("name", FORCED)
def test_calls_of_a_guide_are_read_as_calls(name: str, *, several: bool) -> None:
    targets = [Target(tool, schema) for tool, schema in SCHEMAS.items()]
    grammar = calls_grammar(call_grammar(name), targets, lambda _: None, several=several)
    guides = Guides(byte_tokenizer())
    try:
        for seed in range(12):
            follower = guides.open(Guide(kind="calls", grammar=grammar))
            text = written(follower, guides, name, seed).decode("utf-8", "replace")
            folded = run(Sample("", name, text, tools=SCHEMAS), [text])
            assert not folded.content, text
            assert folded.calls, text
            assert several or len(folded.calls) == 1
            for tool, arguments in folded.calls:
                loose = {**SCHEMAS[tool]}
                if call_grammar(name).slot is Slot.XML:  # bare text has no bounds
                    loose["properties"] = {**loose["properties"], "path": {"type": "string"}}
                jsonschema.validate(json.loads(arguments), loose)
    finally:
        guides.close()


def test_special_tokens_are_written_as_tokens() -> None:
    grammar = calls_grammar(
        call_grammar("mistral"),
        [Target("list", SCHEMAS["list"])],
        lambda text: 7 if text == "[TOOL_CALLS]" else None,
        several=False,
    )
    assert "<[7]>" in grammar
    assert "TOOL_CALLS" not in grammar

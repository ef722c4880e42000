"""What a guide makes of a format's `CallGrammar` is what the format's parser reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve.text.channels import TOOL_PARSERS, CallGrammar, Slot, call_grammar
from tests.text.channels.folding import run
from tests.text.channels.sample import TOOLS, Sample

PROMPTS = {"harmony": "<|start|>assistant"}


def written(grammar: CallGrammar, name: str, arguments: dict[str, Any]) -> str:
    return grammar.opening(name) + slot(grammar, arguments) + grammar.close


def slot(grammar: CallGrammar, arguments: dict[str, Any]) -> str:
    if grammar.slot is Slot.JSON:
        return json.dumps(arguments, ensure_ascii=False)
    if grammar.slot is Slot.PYTHON:
        return ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return "".join(
        grammar.parameter_opening(key)
        + (value if isinstance(value, str) else json.dumps(value))
        + grammar.parameter_close
        for key, value in arguments.items()
    )


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "path": TEXTS,
        "text": TEXTS
        | st.sampled_from(["</tool_call>", "}]", "<|call|>", "[TOOL_CALLS]", "', b="]),
        "force": st.booleans(),
        "lines": st.lists(st.integers(), max_size=3),
        "options": st.dictionaries(st.text("ab", min_size=1, max_size=2), st.none() | TEXTS),
    },
)
CALLS = st.lists(
    st.tuples(st.sampled_from(["edit", "list_tables"]), ARGUMENTS), min_size=1, max_size=3
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(TOOL_PARSERS)), CALLS)
def test_calls_as_the_grammar_writes_them_are_read(
    tool: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    calls = [(name, arguments if name == "edit" else {}) for name, arguments in calls]
    grammar = call_grammar(tool)
    body = grammar.separator.join(written(grammar, name, arguments) for name, arguments in calls)
    text = grammar.begin + body + grammar.end
    folded = run(Sample("", tool, text, prompt=PROMPTS.get(tool, "")), [text])
    assert not folded.content and all(folded.complete)
    assert [(name, json.loads(arguments)) for name, arguments in folded.calls] == calls


@pytest.mark.parametrize("tool", TOOL_PARSERS)
def test_a_trigger_begins_a_call(tool: str) -> None:
    grammar = call_grammar(tool)
    for name in TOOLS:
        start = grammar.begin + grammar.opening(name)
        assert all(start.startswith(trigger) for trigger in grammar.triggers)
    literals = grammar.begin + grammar.open + grammar.close + grammar.separator + grammar.end
    assert all(text in literals for text in grammar.special if tool != "harmony")

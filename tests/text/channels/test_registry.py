"""Parsers are found by name or by what a checkpoint says of itself."""

from __future__ import annotations

import pytest

from edgeserve.errors import BadConfig
from edgeserve.text.channels import (
    ALIASES,
    REASONING_PARSERS,
    TOOL_PARSERS,
    reasoning_parser,
    tool_parser,
)
from edgeserve.text.channels.registry import REASONING_HINTS, TOOL_HINTS


@pytest.mark.parametrize(
    ("model_type", "template", "tool", "reasoning"),
    [
        ("qwen2", '<tool_call>\\n{"name"', "hermes", "none"),
        ("qwen3", "{{ '<tool_call>' }} <think>\\n\\n</think>", "hermes", "qwen3"),
        ("qwen3_moe", "<tool_call>\\n<function=example>", "qwen3_xml", "none"),
        ("nemotron_h", "<TOOLCALL>[ </think>", "nemotron", "nemotron"),
        ("nemotron_h", "<tool_call>\\n<function= <think>", "qwen3_xml", "nemotron"),
        ("mistral", "[TOOL_CALLS] [", "mistral", "none"),
        ("mistral3", "[TOOL_CALLS] [ARGS] [THINK]", "mistral_args", "mistral"),
        ("llama", '{"name": function name, "parameters": dictionary of', "llama3_json", "none"),
        ("llama4", "", "pythonic", "none"),
        ("lfm2", "<|tool_call_start|>", "pythonic", "none"),
        ("gpt_oss", "", "harmony", "harmony"),
        ("qwen2", "<｜Assistant｜><think>\\n", "hermes", "deepseek_r1"),
        ("gemma3", "{{ messages }}", "generic", "none"),
        ("", "", "generic", "none"),
    ],
)
def test_auto_reads_template_and_model_type(
    model_type: str, template: str, tool: str, reasoning: str
) -> None:
    assert tool_parser("auto", model_type=model_type, template=template) == tool
    assert reasoning_parser("auto", model_type=model_type, template=template) == reasoning


def test_a_name_wins_over_what_the_checkpoint_says() -> None:
    assert tool_parser("hermes", model_type="gpt_oss", template="<|channel|>") == "hermes"
    assert tool_parser("openai") == "harmony"
    assert reasoning_parser("none", template="<think>") == "none"


def test_an_unknown_name_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(BadConfig, match="--tool-call-parser 'xyz' is unknown; use one of auto, he"):
        tool_parser("xyz")
    with pytest.raises(BadConfig, match="--reasoning-parser 'hermes' is unknown"):
        reasoning_parser("hermes")


def test_every_name_that_a_table_gives_is_a_parser() -> None:
    assert set(ALIASES.values()) <= {*TOOL_PARSERS, *REASONING_PARSERS}
    assert {hint.parser for hint in TOOL_HINTS} <= set(TOOL_PARSERS)
    assert {hint.parser for hint in REASONING_HINTS} <= set(REASONING_PARSERS)
    assert not set(ALIASES) & {*TOOL_PARSERS, *REASONING_PARSERS}

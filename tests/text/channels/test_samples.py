"""Every sample says, thinks and calls what it should, in any cutting of its text."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve.generation import Finish, Piece
from edgeserve.text.channels import TOOL_PARSERS
from tests.text.channels.corpus import SAMPLES
from tests.text.channels.folding import channels, fold, marked, marked_whole, run
from tests.text.channels.sample import TOOLS, Sample

BY_ID = {sample.id: sample for sample in SAMPLES}
SHORT = [sample for sample in SAMPLES if len(sample.text) < 400]
each = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
each_short = pytest.mark.parametrize("sample", SHORT, ids=lambda sample: sample.id)


def test_samples_have_names_of_their_own() -> None:
    assert len(BY_ID) == len(SAMPLES)
    assert {sample.tool for sample in SAMPLES} >= set(TOOL_PARSERS) - {"mistral_args"}


@each
def test_a_sample_in_one_piece(sample: Sample) -> None:
    folded = run(sample, [sample.text])
    complete = [True] * len(sample.calls)
    if sample.incomplete:
        complete[-1] = False
    assert folded.told() == (sample.content, sample.reasoning, sample.calls, complete)
    assert len(set(folded.ids)) == len(folded.ids)
    assert all(re.fullmatch(r"call_[0-9a-f]{24}", one) for one in folded.ids)
    for (_, arguments), is_complete in zip(folded.calls, folded.complete, strict=True):
        assert not is_complete or isinstance(json.loads(arguments), dict)


@each
def test_a_sample_character_by_character(sample: Sample) -> None:
    assert run(sample, sample.text).told() == run(sample, [sample.text]).told()


@each_short
def test_a_sample_cut_at_every_point(sample: Sample) -> None:
    whole = run(sample, [sample.text]).told()
    for at in range(1, len(sample.text)):
        assert run(sample, [sample.text[:at], sample.text[at:]]).told() == whole, at


@each_short
def test_a_sample_with_special_tokens_as_marks(sample: Sample) -> None:
    whole = run(sample, [sample.text]).told()
    assert fold(channels(sample), marked(sample), sample.finish).told() == whole
    one = marked_whole(sample)
    assert fold(channels(sample), [one], sample.finish).told() == whole


@each_short
def test_a_sample_that_ends_anywhere(sample: Sample) -> None:
    """max_tokens or a stop string may end the text at any point: nothing is lost."""
    for finish in Finish:
        for at in range(len(sample.text)):
            part, cut = sample.text[:at], at * 7 // 9
            pieces = [Piece(0, one) for one in (part[:cut], part[cut:])]
            whole = fold(channels(sample), [Piece(0, part)], finish)
            assert fold(channels(sample), pieces, finish).told() == whole.told(), at
            if not whole.calls and sample.think == "none" and sample.tool != "harmony":
                assert whole.content == part


FRAGMENTS = sorted(
    {
        *("<tool_call>", "</tool_call>", "<think>", "</think>", "<function=", "get_weather", ">"),
        *("</function>", "<parameter=", "city", "</parameter>", "[TOOL_CALLS]", "[ARGS]", "[", "]"),
        *(
            "{",
            "}",
            '{"name": "',
            '"',
            '", "arguments": ',
            "{}",
            '{"city": "Oslo"}',
            ", ",
            ":",
            "\\",
        ),
        *(
            "<TOOLCALL>",
            "</TOOLCALL>",
            "<|python_tag|>",
            "; ",
            "(",
            ")",
            "=",
            "'",
            "\n",
            " ",
            "a",
            "1",
        ),
        *("<|channel|>", "analysis", "commentary", "final", " to=functions.", "<|message|>", "```"),
        *("<|call|>", "<|end|>", "<|start|>", "assistant", "<", "</", "é", "null", "list_tables"),
        *('"function": ', '"tool_calls": [', "<tool_", "_call>", '<atem:invoke name="'),
    }
)


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(sorted(TOOL_PARSERS)),
    st.sampled_from(["none", "qwen3", "deepseek_r1"]),
    st.lists(st.sampled_from(FRAGMENTS), max_size=24),
    st.data(),
)
def test_no_cutting_changes_any_text(
    tool: str, think: str, fragments: list[str], data: st.DataObject
) -> None:
    text = "".join(fragments)
    cuts = data.draw(st.sets(st.integers(0, max(len(text), 1)), max_size=6))
    finish = data.draw(st.sampled_from(Finish))
    sample = Sample("", tool, text, think=think, finish=finish)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[a:b] for a, b in pairwise(edges)]
    whole = run(sample, [text])
    assert run(sample, parts).told() == whole.told()
    assert run(sample, text).told() == whole.told()
    assert all(name in TOOLS for name, _ in whole.calls)
    for (_, arguments), is_complete in zip(whole.calls, whole.complete, strict=True):
        assert not is_complete or isinstance(json.loads(arguments), dict)
    if not whole.calls and think == "none" and tool != "harmony":
        assert whole.content == text


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(SHORT), st.data())
def test_no_cutting_changes_a_sample(sample: Sample, data: st.DataObject) -> None:
    text = sample.text
    cuts = data.draw(st.sets(st.integers(0, len(text)), max_size=12))
    edges = sorted({0, len(text), *cuts})
    parts = [text[a:b] for a, b in pairwise(edges)]
    assert run(sample, parts).told() == run(sample, [text]).told()

"""The rules of reasoning that a request carries, for tags of one token and of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from edgeserve.pipeline.thinking import rules
from edgeserve.text.channels import Thoughts
from edgeserve.text.channels.think import QWEN3
from edgeserve.text.tokenizer import Tokenizer

# A tokenizer that has no token for a tag, and writes its last sign together with line breaks.
MERGES = {"</": 1, "<": 2, "think": 3, ">\n\n": 4, ">\n": 5, ">": 6, "\n": 7}


class Merging:
    def __init__(self, tokens: Mapping[str, int]) -> None:
        self._tokens = tokens

    def id_of(self, text: str) -> int | None:
        return self._tokens.get(text)

    def encode(self, text: str, **_: Any) -> list[int]:
        ids = []
        while text:
            token = max((one for one in self._tokens if text.startswith(one)), key=len)
            ids.append(self._tokens[token])
            text = text[len(token) :]
        return ids


def made(tokens: Mapping[str, int]) -> Tokenizer:
    return cast(Tokenizer, Merging(tokens))


def test_tags_of_several_tokens_end_in_every_way_they_are_written() -> None:
    found = rules(made(MERGES), Thoughts(QWEN3, is_open=True), 8)
    assert found.end_markers == ((1, 3, 6), (1, 3, 5), (1, 3, 4))
    assert (found.closing, found.budget) == ((7, 1, 3, 4), 8)
    assert found.starts_inside and found.start_markers == ()


def test_tags_of_one_token_are_that_token() -> None:
    tokens = made({"<think>": 9, "</think>": 10, "\n": 7, "\n\n": 8})
    found = rules(tokens, Thoughts(QWEN3, is_open=False), 0)
    assert (found.start_markers, found.end_markers) == (((9,),), ((10,),))
    assert (found.closing, found.starts_inside) == ((7, 10, 8), False)


def test_a_closing_that_merges_with_its_tag_is_the_tag() -> None:
    tokens = made({**MERGES, "\n</": 11})
    found = rules(tokens, Thoughts(QWEN3, is_open=True), 1)
    assert found.closing in found.end_markers


@pytest.mark.parametrize("is_open", [True, False])
def test_without_a_budget_nothing_is_put_in(is_open: bool) -> None:
    found = rules(made(MERGES), Thoughts(QWEN3, is_open=is_open), None)
    assert (found.budget, found.closing) == (None, ())

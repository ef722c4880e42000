"""docs/http.md names every field that is accepted, accepted without effect, or refused for now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgeserve.protocol.openai.chat import ChatRequest
from edgeserve.protocol.openai.completion import CompletionRequest
from edgeserve.protocol.openai.harmless import HARMLESS
from edgeserve.protocol.openai.later import LATER
from edgeserve.protocol.openai.request import StreamOptions

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
FIELDS = {*ChatRequest.__struct_fields__, *CompletionRequest.__struct_fields__}


def names(heading: str) -> set[str]:
    section = PAGE.partition(heading)[2].partition("\n#")[0]
    return set(re.findall(r"`([a-z_]+)`", section))


@pytest.mark.parametrize(
    ("heading", "fields"),
    [("### Accepted without effect", HARMLESS), ("### Not carried out yet", LATER)],
)
def test_lists_are_complete(heading: str, fields: tuple[str, ...]) -> None:
    assert names(heading) >= set(fields)
    assert names(heading) <= {*fields, "unsupported_feature"}


def test_fields_are_described() -> None:
    own = FIELDS - {*HARMLESS, *LATER} | set(StreamOptions.__struct_fields__)
    assert names("## Fields") >= own

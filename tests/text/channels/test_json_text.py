"""The scanner copies JSON as it is, repairs what is documented, and calls the rest broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve.text.channels.json_text import JsonScanner

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def scan(text: str, size: int) -> tuple[str, JsonScanner]:
    scanner, copy = JsonScanner(), ""
    for at in range(0, len(text), size):
        part, read = text[at : at + size], 0
        while read < len(part) and not scanner.done and not scanner.broken:
            read = scanner.feed(part, read)
        copy += scanner.take()
    return copy, scanner


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text(), VALUES), st.integers(1, 9), st.booleans(), st.sampled_from([None, 1])
)
def test_json_is_copied_as_it_is(
    value: dict[str, object], size: int, ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    copy, scanner = scan(text + " tail", size)
    assert scanner.done and copy == text


@settings(max_examples=400, deadline=None)
@given(st.text('{}[]":,\\ntrue01.-eE u\n', max_size=14), st.integers(1, 5))
def test_what_is_done_is_json_and_what_is_json_is_done(text: str, size: int) -> None:
    copy, scanner = scan("[" + text + "]", size)
    assert not (scanner.done and scanner.broken)
    if scanner.done:
        assert isinstance(json.loads(copy), list)
    try:
        json.loads("[" + text + "]")
    except ValueError:
        return
    assert scanner.done and copy == "[" + text + "]"


@pytest.mark.parametrize(
    ("text", "copy"),
    [
        ('["a\nb\t"]', '["a\\nb\\t"]'),
        (r'["C:\path\users\d"]', r'["C:\\path\\users\\d"]'),
        (r'["it\'s"]', r"""["it's"]"""),
        ("[True, False, None]", "[true, false, null]"),
    ],
)
def test_common_slips_are_repaired(text: str, copy: str) -> None:
    for size in range(1, len(text) + 1):
        assert scan(text, size)[0] == copy
    json.loads(copy)


@pytest.mark.parametrize(
    "text", ["[1,]", "[01]", "[+1]", "[1.]", "[NaN]", '{"a" 1}', "{a: 1}", "{'a': 1}", "[}"]
)
def test_other_slips_are_broken(text: str) -> None:
    for size in range(1, len(text) + 1):
        assert scan(text, size)[1].broken

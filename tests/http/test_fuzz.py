"""No body is a 500. Most get a 400 that names what is wrong; none reaches the engine then."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeserve.protocol.openai.chat import ChatRequest
from edgeserve.protocol.openai.completion import CompletionRequest
from tests.http.stand_in import Running

NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([0, 1, -1, 0.0, 1.0, 2**31, 2**63, 2**64, 1e308, 5e-324]),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=20))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
ROLES = st.one_of(st.sampled_from(["user", "system", "assistant", "tool"]), VALUES)
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url"]), "text": VALUES}), VALUES
)
CONTENTS = st.one_of(st.text(max_size=30), st.lists(PARTS, max_size=3), VALUES)
MESSAGES = st.one_of(
    st.lists(st.fixed_dictionaries({"role": ROLES, "content": CONTENTS}), max_size=3), VALUES
)
PROMPTS = st.one_of(st.text(max_size=30), st.lists(st.integers(0, 300), max_size=5), VALUES)


def bodies(kind: type[Any], **likely: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Bodies with the required field mostly right and a few others of any kind."""
    names = st.one_of(st.sampled_from(kind.__struct_fields__), st.text(max_size=8))
    return st.builds(
        lambda more, fixed: {**more, **fixed},
        st.dictionaries(names, VALUES, max_size=3),
        st.fixed_dictionaries(likely),
    )


CASES = {
    "/v1/chat/completions": bodies(ChatRequest, messages=MESSAGES),
    "/v1/completions": bodies(CompletionRequest, prompt=PROMPTS),
}


def check(answer: httpx.Response) -> None:
    assert answer.status_code in (200, 400, 404, 413)
    if answer.status_code == 200:
        return
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"] and error["type"] and isinstance(error["code"], str)


@pytest.mark.parametrize("path", CASES)
def test_any_json_is_answered(path: str, server: Running, http: httpx.Client) -> None:
    @settings(
        max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(CASES[path])
    def try_body(body: Any) -> None:
        text = json.dumps(body, ensure_ascii=True).encode()  # with NaN and lone surrogates
        before = len(server.front.replay.requests)
        answer = http.post(path, content=text)
        check(answer)
        if answer.status_code != 200:
            assert len(server.front.replay.requests) == before, "nothing reaches the engine"

    try_body()


@pytest.mark.parametrize("path", CASES)
def test_any_bytes_are_answered(path: str, http: httpx.Client) -> None:
    start = b'{"messages":[{"role":"user","content":"hi"}],"prompt":"hi"'

    @settings(
        max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(st.binary(max_size=60), st.sampled_from([b"", start, start + b',"stop":']))
    def try_bytes(tail: bytes, head: bytes) -> None:
        answer = http.post(path, content=head + tail)
        check(answer)
        assert answer.status_code == 400

    try_bytes()

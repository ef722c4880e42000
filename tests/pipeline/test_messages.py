"""A conversation that HTTP refuses is refused from Python for the same reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgeserve.errors import EdgeserveError
from edgeserve.pipeline.call import Chat
from edgeserve.pipeline.given import Turn
from edgeserve.protocol.openai.chat import chat_call, read_chat

PYTHON = Turn(has_template=True)


def over_http(messages: list[dict[str, Any]]) -> Chat:
    (chat,) = chat_call(
        read_chat(msgspec.json.encode({"model": "m", "messages": messages}))
    ).prompts
    assert isinstance(chat, Chat)
    return chat


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        ({"role": "wizard", "content": "x"}, "invalid_value", "messages[1].role"),
        ({"content": "x"}, "missing_required_parameter", "messages[1].role"),
        ({"role": 5, "content": "x"}, "invalid_type", "messages[1].role"),
        ({"role": "user"}, "missing_required_parameter", "messages[1].content"),
        ({"role": "user", "content": None}, "missing_required_parameter", "messages[1].content"),
        ({"role": "user", "content": 5}, "invalid_type", "messages[1].content"),
        ({"role": "user", "content": [5]}, "invalid_type", "messages[1].content[0]"),
        (
            {"role": "user", "content": [{"type": "image_url"}]},
            "unsupported_feature",
            "messages[1].content[0].type",
        ),
        (
            {"role": "user", "content": [{"type": "smell", "text": "x"}]},
            "invalid_value",
            "messages[1].content[0].type",
        ),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "invalid_type",
            "messages[1].content[0].text",
        ),
    ],
)
def test_both_refuse_a_message_alike(message: dict[str, Any], code: str, param: str) -> None:
    messages = [{"role": "user", "content": "hello"}, message]
    for read in (over_http, PYTHON.chat):
        with pytest.raises(EdgeserveError) as refused:
            read(messages)
        assert (refused.value.info().code, refused.value.info().param) == (code, param), read


def test_both_give_the_template_the_same_messages() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": ["a", {"type": "text", "text": "b"}]},
        {"role": "assistant"},
    ]
    told = list(PYTHON.chat(messages).messages)
    assert told == list(over_http(messages).messages)
    assert [one["content"] for one in told] == ["be brief", "ab", ""]
    assert messages[0]["role"] == "developer", "the caller's own are left alone"

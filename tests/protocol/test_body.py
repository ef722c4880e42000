"""Every way a body can be wrong: status 400, a message, the dotted param and a code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgeserve.errors import InvalidRequest
from edgeserve.protocol.openai.chat import chat_call, read_chat
from edgeserve.protocol.openai.completion import completion_call, read_completion
from edgeserve.protocol.openai.harmless import HARMLESS
from edgeserve.protocol.openai.later import LATER, NOTHING

MESSAGES = '"messages":[{"role":"user","content":"hi"}]'
USER = '{"role":"user","content":"hi"}'


def chat_error(body: str | bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        chat_call(read_chat(body.encode() if isinstance(body, str) else body))
    assert caught.value.status == 400 and caught.value.type == "invalid_request_error"
    assert caught.value.message
    return caught.value


def field(text: str) -> str:
    return f"{{{MESSAGES},{text}}}"


CASES: list[tuple[str | bytes, str | None, str]] = [
    ("", None, "invalid_json"),
    ("{", None, "invalid_json"),
    (f"{{{MESSAGES}}}x", None, "invalid_json"),
    (b"\xff", None, "invalid_json"),
    (b'{"messages":[{"role":"user","content":"\xff"}]}', None, "invalid_json"),
    (b'{"messages":[{"role":"user","content":"\xed\xa0\x80"}]}', None, "invalid_json"),
    (b"\xef\xbb\xbf{}", None, "invalid_json"),
    ("null", None, "invalid_type"),
    ("[]", None, "invalid_type"),
    ('"text"', None, "invalid_type"),
    ("{}", "messages", "missing_required_parameter"),
    ('{"messages":null}', "messages", "invalid_type"),
    ('{"messages":[]}', "messages", "invalid_value"),
    ('{"messages":"hi"}', "messages", "invalid_type"),
    ('{"messages":["hi"]}', "messages[0]", "invalid_type"),
    ('{"messages":[{}]}', "messages[0].role", "missing_required_parameter"),
    ('{"messages":[{"role":1}]}', "messages[0].role", "invalid_type"),
    ('{"messages":[{"role":"robot","content":"a"}]}', "messages[0].role", "invalid_value"),
    (
        '{"messages":[{"role":"tool","content":"a"}]}',
        "messages[0].tool_call_id",
        "missing_required_parameter",
    ),
    (
        '{"messages":[{"role":"user"}]}',
        "messages[0].content",
        "missing_required_parameter",
    ),
    ('{"messages":[{"role":"user","content":3}]}', "messages[0].content", "invalid_type"),
    (
        f'{{"messages":[{USER},{{"role":"user","content":[{{"type":"text"}}]}}]}}',
        "messages[1].content[0].text",
        "invalid_type",
    ),
    (
        '{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}',
        "messages[0].content[0].type",
        "unsupported_feature",
    ),
    (
        '{"messages":[{"role":"user","content":[{"type":"smell","text":"a"}]}]}',
        "messages[0].content[0].type",
        "invalid_value",
    ),
    (
        '{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}',
        "messages[0].tool_calls[0].function",
        "missing_required_parameter",
    ),
    (
        '{"messages":[{"role":"user","content":"a \\ud83d"}]}',
        "messages[0].content",
        "invalid_unicode",
    ),
    (field('"stop":["a","\\ude00b"]'), "stop[1]", "invalid_unicode"),
    (field('"model":"\\udcf0"'), "model", "invalid_unicode"),
    (field('"temprature":1'), "temprature", "unknown_parameter"),
    (field('"temperature":"1"'), "temperature", "invalid_type"),
    (field('"temperature":true'), "temperature", "invalid_type"),
    (field('"temperature":NaN'), None, "invalid_json"),
    (field('"temperature":1e999'), "temperature", "invalid_value"),
    (field('"temperature":-0.1'), "temperature", "invalid_value"),
    (field('"temperature":2.1'), "temperature", "invalid_value"),
    (field('"top_p":0'), "top_p", "invalid_value"),
    (field('"top_p":1.01'), "top_p", "invalid_value"),
    (field('"min_p":-1'), "min_p", "invalid_value"),
    (field('"top_k":-2'), "top_k", "invalid_value"),
    (field('"top_k":1.5'), "top_k", "invalid_type"),
    (field('"seed":"a"'), "seed", "invalid_type"),
    (field(f'"seed":1{"0" * 30}'), "seed", "invalid_value"),
    (field(f'"seed":1{"0" * 9000}'), "seed", "invalid_value"),
    (field('"n":0'), "n", "invalid_value"),
    (field('"n":true'), "n", "invalid_type"),
    (field('"n":1000000'), "n", "invalid_value"),
    (field('"max_tokens":0'), "max_tokens", "invalid_value"),
    (field('"max_tokens":-1'), "max_tokens", "invalid_value"),
    (field('"max_tokens":1.0'), "max_tokens", "invalid_type"),
    (field('"max_completion_tokens":0'), "max_completion_tokens", "invalid_value"),
    (
        field('"max_tokens":1,"max_completion_tokens":2'),
        "max_completion_tokens",
        "invalid_value",
    ),
    (field('"stop":1'), "stop", "invalid_type"),
    (field('"stop":["a",null]'), "stop[1]", "invalid_type"),
    (field('"logprobs":1'), "logprobs", "invalid_type"),
    (field('"top_logprobs":3'), "top_logprobs", "invalid_value"),
    (field('"logprobs":false,"top_logprobs":3'), "top_logprobs", "invalid_value"),
    (field('"logprobs":true,"top_logprobs":51'), "top_logprobs", "invalid_value"),
    (field('"logprobs":true,"top_logprobs":-1'), "top_logprobs", "invalid_value"),
    (field('"stream":"yes"'), "stream", "invalid_type"),
    (field('"stream_options":{"include_usage":true}'), "stream_options", "invalid_value"),
    (
        field('"stream":true,"stream_options":{"include_usage":1}'),
        "stream_options.include_usage",
        "invalid_type",
    ),
    (
        field('"stream":true,"stream_options":{"x":1}'),
        "stream_options.x",
        "unknown_parameter",
    ),
    (field('"priority":1e3'), "priority", "invalid_type"),
    (field(f'"priority":{2**40}'), "priority", "invalid_value"),
    (field('"cache_salt":1'), "cache_salt", "invalid_type"),
    (field('"reuse_context":"no"'), "reuse_context", "invalid_type"),
    (field('"echo":true'), "echo", "unknown_parameter"),
    (field('"n":1,"n":2'), "n", "invalid_value"),
    (f"{{{MESSAGES},{MESSAGES}}}", "messages", "invalid_value"),
    (field(f'"user":{"[" * 100_000}{"]" * 100_000}'), None, "invalid_json"),
    (field(f'"zz":{"[" * 100_000}'), "zz", "unknown_parameter"),
]


@pytest.mark.parametrize(("body", "param", "code"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_a_wrong_chat_body_is_named(body: str | bytes, param: str | None, code: str) -> None:
    error = chat_error(body)
    assert (error.param, error.code) == (param, code)


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        ("null", "prompt"),
        ("1", "prompt"),
        ("[]", "prompt"),
        ("[[]]", "prompt[0]"),
        ('["a",1]', "prompt[1]"),
        ('[1,"a"]', "prompt[1]"),
        ("[[1],2]", "prompt[1]"),
        ("[1,[2]]", "prompt[1]"),
        ("[-1]", "prompt[0]"),
        ("[[1,-1]]", "prompt[0][1]"),
        ("[1.5]", "prompt[0]"),
        ("[true]", "prompt[0]"),
        (f"[{2**31}]", "prompt[0]"),
        (json.dumps(["a"] * 1025), "prompt"),
    ],
)
def test_a_wrong_prompt_is_named(prompt: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        completion_call(read_completion(f'{{"prompt":{prompt}}}'.encode()))
    assert caught.value.param == param and caught.value.status == 400


@pytest.mark.parametrize(
    ("text", "code"), [('"logprobs":true', "invalid_type"), ('"logprobs":51', "invalid_value")]
)
def test_completion_logprobs_are_a_small_number(text: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        completion_call(read_completion(f'{{"prompt":"a",{text}}}'.encode()))
    assert (caught.value.param, caught.value.code) == ("logprobs", code)


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("value", ['"x"', "true", "7", '{"a":[1]}', "null"])
def test_harmless_fields_are_accepted(name: str, value: str) -> None:
    chat_call(read_chat(field(f'"{name}":{value}').encode()))


@pytest.mark.parametrize("name", LATER)
def test_later_fields_are_refused_by_name_unless_they_ask_for_nothing(name: str) -> None:
    error = chat_error(field(f'"{name}":{{"some":"thing"}}'))
    assert (error.code, error.param) == ("unsupported_feature", name)
    for value in (None, *NOTHING.get(name, ())):
        chat_call(read_chat(field(f'"{name}":{json.dumps(value)}').encode()))


def test_null_is_unset_for_every_optional_field() -> None:
    from edgeserve.protocol.openai.chat import ChatRequest
    from edgeserve.protocol.openai.completion import CompletionRequest

    names = set(ChatRequest.__struct_fields__) - {"messages"}
    body = {**dict.fromkeys(names), "messages": [{"role": "user", "content": "hi"}]}
    assert chat_call(read_chat(json.dumps(body).encode())) == chat_call(
        read_chat(f"{{{MESSAGES}}}".encode())
    )
    names = set(CompletionRequest.__struct_fields__) - {"prompt"}
    body = {**dict.fromkeys(names), "prompt": "a"}
    assert completion_call(read_completion(json.dumps(body).encode())) == completion_call(
        read_completion(b'{"prompt":"a"}')
    )


def test_what_is_asked_reaches_the_call() -> None:
    body: dict[str, Any] = {
        "messages": [
            {"role": "developer", "content": "be brief"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            {"role": "assistant", "content": None, "refusal": None, "annotations": [], "id": 1},
        ],
        "temperature": 0,
        "top_p": 0.5,
        "top_k": -1,
        "min_p": 0.1,
        "seed": 2**64 - 1,
        "n": 2,
        "stop": ["x", "y"],
        "max_completion_tokens": 7,
        "max_tokens": 7,
        "ignore_eos": True,
        "logprobs": True,
        "top_logprobs": 20,
        "reuse_context": False,
        "cache_generated_tokens": False,
        "priority": 3,
        "cache_salt": "s",
    }
    call = chat_call(read_chat(json.dumps(body).encode()))
    (chat,) = call.prompts
    assert chat.messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": ""},
    ]
    params = call.params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0, 0.5, -1, 0.1)
    assert (params.seed, params.choices, params.stops) == (2**64 - 1, 2, ("x", "y"))
    assert (params.token_limit, params.ignore_eos, params.alternatives) == (7, True, 20)
    assert (params.reuse_context, params.cache_generated_tokens) == (False, False)
    assert (call.priority, call.cache_salt, call.default_max_tokens) == (3, "s", None)


def test_a_name_inside_a_string_is_no_duplicate() -> None:
    text = json.dumps({"messages": [{"role": "user", "content": '{"messages": "messages"}'}]})
    chat_call(read_chat(text.encode()))
    nested = field('"model":"model","metadata":{"model":1,"messages":2}')
    chat_call(read_chat(nested.encode()))


def test_paired_surrogate_escapes_are_one_character() -> None:
    call = chat_call(read_chat(rb'{"messages":[{"role":"user","content":"\ud83d\ude00"}]}'))
    assert call.prompts[0].messages[0]["content"] == "😀"

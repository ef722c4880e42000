"""Wrong values of the sampling and template fields of a chat: 400, the param and a code."""

from __future__ import annotations

import pytest

from edgeserve.errors import InvalidRequest
from edgeserve.protocol.openai.chat import chat_call, read_chat

CASES = [
    ('"typical_p":0', "typical_p", "invalid_value"),
    ('"repetition_penalty":0', "repetition_penalty", "invalid_value"),
    ('"repetition_penalty":1e999', "repetition_penalty", "invalid_value"),
    ('"frequency_penalty":2.1', "frequency_penalty", "invalid_value"),
    ('"presence_penalty":"1"', "presence_penalty", "invalid_type"),
    ('"logit_bias":{"5":null}', "logit_bias", "invalid_type"),
    ('"logit_bias":{"5":101}', "logit_bias", "invalid_value"),
    ('"logit_bias":{"x":1}', "logit_bias", "invalid_value"),
    ('"logit_bias":[1]', "logit_bias", "invalid_type"),
    ('"bad_words":"a"', "bad_words", "invalid_type"),
    ('"bad_words":["a",""]', "bad_words", "invalid_value"),
    ('"bad_words":["a",1]', "bad_words[1]", "invalid_type"),
    ('"min_tokens":-1', "min_tokens", "invalid_value"),
    ('"min_tokens":3,"max_tokens":2', "min_tokens", "invalid_value"),
    ('"stop_token_ids":[-1]', "stop_token_ids", "invalid_value"),
    ('"stop_token_ids":[1.5]', "stop_token_ids[0]", "invalid_type"),
    ('"stop_token_ids":7', "stop_token_ids", "invalid_type"),
    ('"include_stop_str_in_output":1', "include_stop_str_in_output", "invalid_type"),
    ('"skip_special_tokens":"no"', "skip_special_tokens", "invalid_type"),
    ('"best_of":0', "best_of", "invalid_value"),
    ('"best_of":1,"n":2', "best_of", "invalid_value"),
    ('"best_of":2,"stream":true', "best_of", "invalid_value"),
    ('"prompt_logprobs":true', "prompt_logprobs", "invalid_type"),
    ('"prompt_logprobs":51', "prompt_logprobs", "invalid_value"),
    ('"documents":{}', "documents", "invalid_type"),
    ('"documents":["a"]', "documents[0]", "invalid_type"),
    ('"apply_chat_template":0', "apply_chat_template", "invalid_type"),
    ('"chat_template_kwargs":[]', "chat_template_kwargs", "invalid_type"),
    ('"enable_thinking":"yes"', "enable_thinking", "invalid_type"),
    ('"reasoning_effort":1', "reasoning_effort", "invalid_type"),
    ('"thinking_budget":"5"', "thinking_budget", "invalid_type"),
    ('"thinking_budget":-1', "thinking_budget", "invalid_value"),
    ('"thinking_budget":5,"apply_chat_template":false', "thinking_budget", "invalid_value"),
    (
        '"add_generation_prompt":true,"continue_final_message":true',
        "continue_final_message",
        "invalid_value",
    ),
]


@pytest.mark.parametrize(("text", "param", "code"), CASES)
def test_a_wrong_field_is_named(text: str, param: str, code: str) -> None:
    body = f'{{"messages":[{{"role":"user","content":"hi"}}],{text}}}'
    with pytest.raises(InvalidRequest) as caught:
        chat_call(read_chat(body.encode()))
    assert (caught.value.param, caught.value.code, caught.value.status) == (param, code, 400)

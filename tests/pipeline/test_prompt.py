"""From messages, texts and ids to exactly the tokens that the engine gets."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import msgspec
import pytest

from edgeserve.errors import InternalError, InvalidRequest, NoTemplate, PromptTooLong
from edgeserve.model_info import ModelInfo
from edgeserve.pipeline.call import Call, Chat
from edgeserve.pipeline.prompt import INLINE_CHARS, template_options
from edgeserve.sampling import SamplingParams
from edgeserve.text.tokenizer import Tokenizer
from tests.pipeline.conftest import VOCAB, MakeModel
from tests.pipeline.engine_double import EngineDouble

USER = [{"role": "user", "content": "hi"}]


def ids_of(make_model: MakeModel, prompt: Any, params: SamplingParams | None = None) -> list[int]:
    model = make_model(EngineDouble())
    call = Call(prompts=(prompt,), params=params or SamplingParams())
    return list(asyncio.run(model.encoder.encode(call))[0].ids)


def text_of(make_model: MakeModel, prompt: Any, params: SamplingParams | None = None) -> str:
    model = make_model(EngineDouble())
    call = Call(prompts=(prompt,), params=params or SamplingParams(), echo=True)
    return asyncio.run(model.encoder.encode(call))[0].text


def test_a_text_gets_what_the_post_processor_adds(
    make_model: MakeModel, tokenizer: Tokenizer
) -> None:
    assert ids_of(make_model, "hi") == [tokenizer.bos_id, *tokenizer.encode("hi", special=False)]


def test_a_text_that_begins_with_bos_gets_no_second_one(
    make_model: MakeModel, tokenizer: Tokenizer
) -> None:
    assert ids_of(make_model, "<s>hi") == ids_of(make_model, "hi")
    # only what the post-processor would repeat is dropped; what the text repeats itself stays
    assert (
        ids_of(make_model, "<s><s>hi")[:3] == [tokenizer.bos_id] * 2 + ids_of(make_model, "h")[1:]
    )


def test_a_chat_has_the_specials_that_its_template_writes_and_no_more(
    make_model: MakeModel, tokenizer: Tokenizer
) -> None:
    ids = ids_of(make_model, Chat(messages=USER))
    text = "<s><|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert ids == tokenizer.encode(text, special=False)
    assert ids.count(tokenizer.bos_id) == 1


def test_token_ids_are_used_as_they_are(make_model: MakeModel) -> None:
    assert ids_of(make_model, (5, 0, VOCAB - 1)) == [5, 0, VOCAB - 1]


@pytest.mark.parametrize("wrong", [-1, VOCAB, 10**12])
def test_a_token_id_outside_the_vocabulary_is_refused(make_model: MakeModel, wrong: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{wrong}.*{VOCAB - 1}") as caught:
        ids_of(make_model, (1, wrong))
    assert caught.value.param == "prompt"


def test_an_empty_prompt_is_refused(make_model: MakeModel) -> None:
    with pytest.raises(InvalidRequest, match="empty") as caught:
        ids_of(make_model, ())
    assert caught.value.param == "prompt"


def test_lone_surrogates_are_refused_wherever_they_stand(make_model: MakeModel) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ids_of(make_model, "a\ud83d")
    assert caught.value.param == "prompt"
    with pytest.raises(InvalidRequest) as caught:
        ids_of(make_model, Chat(messages=[{"role": "user", "content": "\ude00"}]))
    assert caught.value.param == "messages"


def test_a_chat_with_a_model_without_template_names_the_way_out(make_model: MakeModel) -> None:
    model = make_model(EngineDouble(), chat=False)
    with pytest.raises(NoTemplate, match="--chat-template"):
        asyncio.run(model.start(Call(prompts=(Chat(messages=USER),))))


def test_echo_gives_the_text_of_token_ids_too(make_model: MakeModel, tokenizer: Tokenizer) -> None:
    assert text_of(make_model, "hi") == "hi"
    assert text_of(make_model, tuple(tokenizer.encode("hi", special=True))) == "<s>hi"


@pytest.mark.parametrize(
    ("wish", "thinks"),
    [
        ({}, False),
        ({"enable_thinking": True}, True),
        ({"reasoning_effort": "low"}, True),
        ({"reasoning_effort": "minimal"}, False),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "high", "enable_thinking": False}, False),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True),
        ({"reasoning_effort": ""}, False),
    ],
)
def test_thinking_is_off_unless_asked(
    make_model: MakeModel, wish: dict[str, Any], thinks: bool
) -> None:
    text = text_of(make_model, Chat(messages=USER), SamplingParams(**wish))
    assert text.endswith("<think>") == thinks


def test_template_options_cannot_replace_the_conversation(make_model: MakeModel) -> None:
    params = SamplingParams(chat_template_kwargs={"messages": []})
    with pytest.raises(InvalidRequest) as caught:
        ids_of(make_model, Chat(messages=USER), params)
    assert caught.value.param == "chat_template_kwargs"


def test_a_fault_of_a_plugin_is_an_error_of_its_request_and_tells_no_prompt(
    make_model: MakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        takes_tools = True

        def render(self, messages: object, **_: object) -> str:
            raise KeyError(f"secret {messages}")

    model = make_model(EngineDouble())
    model.encoder._template = Broken()  # type: ignore[assignment]
    logger = logging.getLogger("edgeserve.pipeline")
    logger.addHandler(caplog.handler)  # whatever a server in this process has configured
    with pytest.raises(InternalError, match="family 'llama'") as caught:
        asyncio.run(model.start(Call(prompts=(Chat(messages=USER),))))
    assert (caught.value.status, "secret" in caught.value.message) == (500, False)
    assert "plugin_failed" in caplog.text
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text
    logger.removeHandler(caplog.handler)


def test_long_prompts_are_turned_in_another_thread(
    make_model: MakeModel, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    encode = tokenizer.encode

    def watched(text: str, *, special: bool = True) -> list[int]:
        threads.append(threading.get_ident())
        return encode(text, special=special)

    monkeypatch.setattr(tokenizer, "encode", watched)
    long = "x" * (INLINE_CHARS + 1)
    ids_of(make_model, "x")
    for prompt in (long, Chat(messages=[{"role": "user", "content": long}])):
        with pytest.raises(PromptTooLong):
            ids_of(make_model, prompt)
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [True, False, False]


def test_bad_words_are_banned_at_the_start_and_after_a_space(
    make_model: MakeModel, tokenizer: Tokenizer
) -> None:
    model = make_model(EngineDouble())
    words = model.encoder.words(["cat", "", "cat"])
    forms = [tokenizer.encode(form, special=False) for form in ("cat", " cat")]
    assert words == tuple(map(tuple, forms))


def test_a_template_without_tools_shows_them_in_the_system_message(
    make_model: MakeModel, info: ModelInfo
) -> None:
    limits = msgspec.structs.replace(info.limits, max_model_len=2000, max_input_len=1999)
    info = msgspec.structs.replace(info, limits=limits)
    call = {"id": "c", "function": {"name": "f", "arguments": {"x": 1}}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "42", "tool_call_id": "c"},
    ]
    tools = [{"type": "function", "function": {"name": "f"}}]
    model = make_model(EngineDouble(), info=info)
    (tokens,) = model.encoder.encode_now(Call(prompts=(Chat(messages=messages, tools=tools),)))
    assert '{"type": "function", "function": {"name": "f"}}\n</tools>' in tokens.text
    assert tokens.text.startswith("<s><|im_start|>system\nYou may call functions")
    assert (
        '<|im_start|>assistant\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>"
    ) in tokens.text


@pytest.mark.parametrize(
    ("wish", "thinking"),
    [
        ({}, False),
        ({"enable_thinking": True}, True),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True),
        ({"chat_template_kwargs": {"thinking": True}}, True),
    ],
)
def test_templates_that_call_it_thinking_are_told_too(wish: dict[str, Any], thinking: bool) -> None:
    assert template_options(SamplingParams(**wish), thinking="auto")["thinking"] is thinking


@pytest.mark.parametrize(
    ("operator", "wish", "thinks"),
    [
        ("auto", {}, False),
        ("auto", {"reasoning_effort": "low"}, True),
        ("on", {}, True),
        ("on", {"enable_thinking": False}, False),
        ("on", {"reasoning_effort": "minimal"}, False),
        ("off", {}, False),
        ("off", {"reasoning_effort": "high"}, False),
        ("off", {"enable_thinking": False}, False),
    ],
)
def test_the_operator_decides_about_thinking(
    make_model: MakeModel, operator: str, wish: dict[str, Any], thinks: bool
) -> None:
    model = make_model(EngineDouble(), enable_thinking=operator)
    call = Call(prompts=(Chat(messages=USER),), params=SamplingParams(**wish))
    (tokens,) = model.encoder.encode_now(call)
    assert tokens.text.endswith("<think>") is thinks


@pytest.mark.parametrize(
    "wish",
    [
        {"enable_thinking": True},
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"chat_template_kwargs": {"thinking": True}},
    ],
)
def test_thinking_that_is_switched_off_is_refused(
    make_model: MakeModel, wish: dict[str, Any]
) -> None:
    model = make_model(EngineDouble(), enable_thinking="off")
    call = Call(prompts=(Chat(messages=USER),), params=SamplingParams(**wish))
    with pytest.raises(InvalidRequest) as caught:
        model.encoder.encode_now(call)
    assert caught.value.param == "enable_thinking"

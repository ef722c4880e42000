"""The official client, unmodified, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.http.stand_in import NAME, Running, say


@pytest.fixture
def client(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
        yield client


def messages(text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "s"}, {"role": "user", "content": text}]


def test_chat_whole(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=NAME, messages=messages(say("Hel", "lo ", "日本", cached=3))
    )
    assert answer.id.startswith("chatcmpl-") and len(answer.id) == len("chatcmpl-") + 32
    assert answer.object == "chat.completion"
    assert answer.model == NAME
    assert answer.choices[0].message.content == "Hello 日本"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].logprobs is None
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 6 + 6 + 1
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 13
    assert answer.usage.prompt_tokens_details.cached_tokens == 3
    assert answer.usage.completion_tokens_details.reasoning_tokens == 0


def test_chat_streamed_says_what_the_whole_answer_says(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=NAME,
        messages=messages(say("Hel", "", "lo ", "日本", finish="length")),
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant" and deltas[0].content == ""
    assert [delta.content for delta in deltas[1:]] == ["Hel", "lo ", "日本", None]
    assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None] * 4 + ["length"]
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 12
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_chat_with_several_choices(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=NAME, messages=messages(say("a", "b")), n=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert {choice.message.content for choice in answer.choices} == {"ab"}
    chunks = list(
        client.chat.completions.create(model=NAME, messages=messages(say("a")), n=2, stream=True)
    )
    assert sorted(c.choices[0].index for c in chunks) == [0, 0, 0, 1, 1, 1]
    assert all(chunk.usage is None for chunk in chunks)


def test_chat_logprobs_are_the_same_streamed_and_whole(client: openai.OpenAI) -> None:
    body = {"model": NAME, "messages": messages(say("né")), "logprobs": True, "top_logprobs": 3}
    whole = client.chat.completions.create(**body).choices[0].logprobs.content
    chunks = client.chat.completions.create(**body, stream=True)
    told = [c.choices[0].logprobs.content for c in chunks if c.choices[0].logprobs]
    assert [entry for content in told for entry in content] == whole
    assert [entry.bytes for entry in whole] == [[0x6E], [0xC3], [0xA9]]
    assert [entry.token for entry in whole] == ["n", "bytes:\\xc3", "bytes:\\xa9"]
    assert all(len(entry.top_logprobs) == 3 for entry in whole)
    assert whole[0].top_logprobs[2].logprob == -9999.0, "JSON has no infinity"


def test_chat_logprobs_without_top(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=NAME, messages=messages(say("ab")), logprobs=True)
    content = answer.choices[0].logprobs.content
    assert [(entry.token, entry.top_logprobs) for entry in content] == [("a", []), ("b", [])]


def test_completion_whole_and_streamed(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=NAME, prompt=say("x", "yz"))
    assert answer.id.startswith("cmpl-") and answer.object == "text_completion"
    assert answer.choices[0].text == "xyz" and answer.choices[0].finish_reason == "stop"
    chunks = list(
        client.completions.create(
            model=NAME,
            prompt=say("x", "yz"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert "".join(c.choices[0].text for c in chunks if c.choices) == "xyz"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage == answer.usage


def test_completion_of_several_prompts(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=NAME, prompt=["one", "two"], n=2, max_tokens=8)
    assert [(c.index, c.text) for c in answer.choices] == [
        (0, "one"),
        (1, "one"),
        (2, "two"),
        (3, "two"),
    ]
    ids = client.completions.create(model=NAME, prompt=[[65, 66], [67]], max_tokens=8)
    assert [choice.text for choice in ids.choices] == ["AB", "C"]
    one = client.completions.create(model=NAME, prompt=[65, 66], max_tokens=8)
    assert [choice.text for choice in one.choices] == ["AB"]
    assert one.usage.prompt_tokens == 2


def test_completion_echo_scores_the_prompt(client: openai.OpenAI) -> None:
    body = {
        "model": NAME,
        "prompt": [[97, 98], [99, 100, 101]],
        "echo": True,
        "logprobs": 1,
        "max_tokens": 1,
    }
    answer = client.completions.create(**body)
    for choice, text in zip(answer.choices, ["aba", "cdec"], strict=True):
        logprobs = choice.logprobs
        assert choice.text == "".join(logprobs.tokens) == text
        assert logprobs.token_logprobs[0] is None and logprobs.top_logprobs[0] is None
        assert logprobs.token_logprobs[1:] == [-1.5] * (len(text) - 1)
        assert logprobs.text_offset == list(range(len(text)))
        assert all(logprobs.tokens[i] in logprobs.top_logprobs[i] for i in range(1, len(text)))
    folded: dict[int, list[str]] = {0: [], 1: []}
    for chunk in client.completions.create(**body, stream=True):
        for choice in chunk.choices:
            folded[choice.index] += choice.logprobs.tokens if choice.logprobs else []
    assert {i: "".join(tokens) for i, tokens in folded.items()} == {0: "aba", 1: "cdec"}


def test_completion_logprobs_zero_tells_the_chosen_token_alone(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=NAME, prompt=say("ab"), logprobs=0)
    assert answer.choices[0].logprobs.top_logprobs == [{"a": -1.5}, {"b": -1.5}]


def test_models(client: openai.OpenAI) -> None:
    cards = client.models.list().data
    assert [card.id for card in cards] == [NAME, "other/name"]
    assert client.models.retrieve("other/name").id == "other/name"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nobody/nothing")
    assert caught.value.code == "model_not_found" and caught.value.param == "model"


def test_errors_have_the_classes_of_the_client(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=NAME, messages=[])
    assert caught.value.param == "messages"
    with pytest.raises(openai.RateLimitError) as busy:
        client.chat.completions.create(model=NAME, messages=messages(say(refuse="busy")))
    assert busy.value.code == "server_busy"
    assert busy.value.response.headers["Retry-After"] == "7"


def test_a_failure_inside_a_stream_is_an_error_not_a_cut(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=NAME, messages=messages(say("a", "b", "c", fail_at=2)), stream=True
    )
    texts: list[str] = []
    with pytest.raises(openai.APIError) as caught:
        texts.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert caught.value.code == "engine_unavailable"


def test_the_async_client(server: Running) -> None:
    import asyncio

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as client:
            calls = [
                client.chat.completions.create(model=NAME, messages=messages(say(str(i), "!")))
                for i in range(20)
            ]
            answers = await asyncio.gather(*calls)
            return [answer.choices[0].message.content or "" for answer in answers]

    assert asyncio.run(main()) == [f"{i}!" for i in range(20)]

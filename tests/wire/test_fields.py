"""Each request field does what it says, through the whole path: HTTP, worker and back."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import httpx
import pytest

from tests.wire.folding import folded, told

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def ask(http: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    """The first choice's text and end, with usage."""
    answer = http.post(CHAT, json={"messages": user(text), "seed": 1, **fields})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    choice = body["choices"][0]
    return {
        "text": choice["message"]["content"],
        "finish": choice["finish_reason"],
        "tokens": body["usage"]["completion_tokens"],
    }


def refusal(http: httpx.Client, path: str = CHAT, **fields: Any) -> tuple[int, str, str]:
    prompt = {"prompt": "say:x"} if path == COMPLETIONS else {"messages": user("say:x")}
    answer = http.post(path, json={**prompt, **fields})
    error = answer.json()["error"]
    return answer.status_code, error["param"], error["code"]


# Sampling --------------------------------------------------------------------------------------


@pytest.mark.works(
    "Penalties, `logit_bias`, `bad_words`, `min_tokens`, stop ids and strings, `best_of`"
)
def test_a_bias_forces_a_token(http: httpx.Client) -> None:
    assert ask(http, "script:free", logit_bias={"65": 100}, max_tokens=6)["text"] == "AAAAAA"
    banned = ask(http, "tokens=9 say:ab", logit_bias={"97": -100}, max_tokens=9)["text"]
    assert "a" not in banned


@pytest.mark.parametrize(
    "bias",
    [
        {"999999": 5},
        {"288": 1},
        {"-1": 5},
        {"abc": 5},
        {"05": 5},
        {"5.0": 5},
        {"5": 1e9},
        {"5": -100.5},
        {"5": None},
        {"5": "1"},
        {"5": True},
        {str(i): 1 for i in range(100_000)},
        [[5, 1]],
    ],
    ids=lambda bias: str(bias)[:20],
)
def test_a_bias_that_cannot_be_is_refused_and_harms_nobody(http: httpx.Client, bias: Any) -> None:
    status, param, _ = refusal(http, logit_bias=bias)
    assert (status, param) == (400, "logit_bias")
    assert ask(http, "say:fine")["text"] == "fine"


@pytest.mark.parametrize(
    "nearly", [{"temperature": t} for t in (1e-4, 1e-8, 5e-324)] + [{"top_p": 1e-4}, {"top_k": 1}]
)
def test_hardly_any_choice_is_greedy(http: httpx.Client, nearly: dict[str, Any]) -> None:
    """Bug bank 061: a tiny temperature neither overflows nor ends the answer."""
    greedy = ask(http, "script:free", temperature=0, max_tokens=12)
    assert ask(http, "script:free", max_tokens=12, **nearly) == greedy


def test_penalties_make_a_greedy_answer_vary(http: httpx.Client) -> None:
    plain = ask(http, "script:free", temperature=0, max_tokens=40)["text"]
    for field, value in [
        ("frequency_penalty", 2),
        ("presence_penalty", 2),
        ("repetition_penalty", 3),
    ]:
        varied = ask(http, "script:free", temperature=0, max_tokens=40, **{field: value})["text"]
        assert varied != plain, field
    assert (
        ask(http, "script:free", temperature=0, max_tokens=40, repetition_penalty=1)["text"]
        == plain
    )


def test_a_small_typical_p_leaves_little_choice(http: httpx.Client) -> None:
    texts = {
        ask(http, "script:free", typical_p=1e-6, max_tokens=12, seed=seed)["text"]
        for seed in range(4)
    }
    assert len(texts) == 1
    texts = {ask(http, "script:free", max_tokens=12, seed=seed)["text"] for seed in range(4)}
    assert len(texts) == 4


def test_bad_words_are_not_written(http: httpx.Client) -> None:
    said = ask(http, "say:the cat sat", bad_words=["cat"])["text"]
    assert said.startswith("the ca") and "cat" not in said
    assert "sat" in ask(http, "say:the cat sat", bad_words=["zebra"])["text"]


def test_min_tokens_holds_off_every_end(http: httpx.Client) -> None:
    assert ask(http, "say:ab")["tokens"] == 3
    assert ask(http, "say:ab", min_tokens=10)["tokens"] >= 10
    script = "tokens=20 say:ab"
    assert ask(http, script, stop="ab", min_tokens=5)["text"] == "abab"
    assert ask(http, script, stop_token_ids=[98], min_tokens=5)["tokens"] == 6
    assert refusal(http, min_tokens=5, max_tokens=4)[1] == "min_tokens"
    assert refusal(http, COMPLETIONS, min_tokens=17)[1] == "min_tokens"
    assert refusal(http, min_tokens=5000)[1] == "min_tokens"


def test_stop_token_ids_end_without_their_text(http: httpx.Client) -> None:
    stopped = ask(http, "say:abc", stop_token_ids=[98])
    assert stopped == {"text": "a", "finish": "stop", "tokens": 2}
    assert refusal(http, stop_token_ids=[288])[1] == "stop_token_ids"
    assert refusal(http, stop_token_ids=[-1])[1] == "stop_token_ids"
    assert refusal(http, stop_token_ids=[0] * 1025)[1] == "stop_token_ids"


def test_the_stop_string_is_shown_when_asked_for(http: httpx.Client) -> None:
    for stream in (False, True):
        body = {
            "messages": user("say:one two three"),
            "stop": [" two"],
            "include_stop_str_in_output": True,
            "logprobs": True,
            "stream": stream,
        }
        answer = http.post(CHAT, json=body)
        choice = (folded if stream else told)(answer)["choices"][0]
        assert (choice["text"], choice["finish"]) == ("one two", "stop")
        assert "".join(one["token"] for one in choice["logprobs"]) == "one two"


def test_special_tokens_are_shown_when_asked_for(http: httpx.Client) -> None:
    script = "say:a<|image|>é"
    assert ask(http, script)["text"] == "aé"
    body = {"messages": user(script), "skip_special_tokens": False, "logprobs": True}
    (choice,) = told(http.post(CHAT, json=body))["choices"].values()
    assert choice["text"] == "a<|image|>é"
    raw = bytes(byte for one in choice["logprobs"] for byte in one["bytes"])
    assert raw.decode() == choice["text"]


def test_best_of_keeps_the_likeliest(http: httpx.Client) -> None:
    free = {"prompt": ["script:free", "script:free tokens=9"], "seed": 5, "max_tokens": 8}
    free |= {"ignore_eos": True}
    every = http.post(COMPLETIONS, json={**free, "n": 6, "logprobs": 0}).json()
    best = http.post(COMPLETIONS, json={**free, "n": 2, "best_of": 6}).json()
    assert [choice["index"] for choice in best["choices"]] == [0, 1, 2, 3]
    assert all(choice["logprobs"] is None for choice in best["choices"])
    for prompt in range(2):
        drawn = every["choices"][6 * prompt : 6 * prompt + 6]
        means = {one["text"]: sum(one["logprobs"]["token_logprobs"]) / 8 for one in drawn}
        expected = sorted(means, key=lambda text: -means[text])[:2]
        assert [one["text"] for one in best["choices"][2 * prompt : 2 * prompt + 2]] == expected
    assert best["usage"]["completion_tokens"] == 2 * 6 * 8
    assert refusal(http, COMPLETIONS, best_of=2, stream=True)[:2] == (400, "best_of")
    assert refusal(http, COMPLETIONS, best_of=1, n=2)[:2] == (400, "best_of")


# Prompt logprobs -------------------------------------------------------------------------------


@pytest.mark.works("`prompt_logprobs` of chats and completions, in the shape of vLLM")
def test_prompt_logprobs_are_those_of_an_echo(http: httpx.Client) -> None:
    body = {"prompt": ["say:ab", "say:é"], "n": 2, "prompt_logprobs": 2, "max_tokens": 2}
    whole = http.post(COMPLETIONS, json=body).json()["choices"]
    echoed = http.post(COMPLETIONS, json={**body, "echo": True, "logprobs": 1}).json()["choices"]
    for choice, echo in zip(whole, echoed, strict=True):
        assert choice["logprobs"] is None
        assert choice["prompt_logprobs"] == echo["prompt_logprobs"]
        first, *rest = choice["prompt_logprobs"]
        assert first is None
        tokens, logprobs = (echo["logprobs"][name] for name in ("tokens", "token_logprobs"))
        for position, told_one in enumerate(rest, 1):
            chosen = next(iter(told_one.values()))
            assert chosen["decoded_token"] == tokens[position]
            assert chosen["logprob"] == logprobs[position]
            assert len(told_one) in (2, 3)
            ranks = [one["rank"] for one in told_one.values() if one["rank"] is not None]
            assert sorted(ranks) == [1, 2]
        assert all(len(top) <= 2 for top in echo["logprobs"]["top_logprobs"] if top)


def test_prompt_logprobs_of_a_chat_are_of_its_rendered_tokens(http: httpx.Client) -> None:
    messages = user("say:ab")
    answer = http.post(CHAT, json={"messages": messages, "prompt_logprobs": 0, "n": 2}).json()
    ids = http.post("/tokenize", json={"messages": messages}).json()["tokens"]
    told_ids = [next(iter(one)) for one in answer["prompt_logprobs"][1:]]
    assert told_ids == [str(token) for token in ids[1:]]
    assert "prompt_logprobs" not in http.post(CHAT, json={"messages": messages}).json()
    assert refusal(http, prompt_logprobs=-1)[1] == "prompt_logprobs"
    assert refusal(http, prompt_logprobs=51)[1] == "prompt_logprobs"


# The template ----------------------------------------------------------------------------------


def prompt_of(http: httpx.Client, **fields: Any) -> str:
    tokens = http.post("/tokenize", json=fields).json()["tokens"]
    return str(http.post("/detokenize", json={"tokens": tokens}).json()["prompt"])


@pytest.mark.works("`continue_final_message`: the answer goes on behind the last message's text")
@pytest.mark.parametrize("given", ["OK!", "OK!\n", "OK! ", "", " "])
def test_the_last_message_is_continued(http: httpx.Client, given: str) -> None:
    """Bug bank 049: the text may end in blanks; the prompt never ends the turn."""
    messages = [*user("say:more"), {"role": "assistant", "content": given}]
    for opens in ({}, {"add_generation_prompt": False}):
        fields = {"messages": messages, "continue_final_message": True, **opens}
        answer = http.post(CHAT, json=fields)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == "more", "new text alone"
        prompt = prompt_of(http, **fields)
        assert prompt.endswith(f"<|im_start|>assistant\n{given}")


def test_continuing_and_opening_exclude_each_other(http: httpx.Client) -> None:
    both = {"add_generation_prompt": True, "continue_final_message": True}
    assert refusal(http, **both)[:2] == (400, "continue_final_message")


def test_no_turn_is_opened_when_none_is_wanted(http: httpx.Client) -> None:
    closed = prompt_of(http, messages=user("hi"), add_generation_prompt=False)
    assert closed.endswith("hi<|im_end|>\n")
    opened = prompt_of(http, messages=user("hi"))
    assert opened.startswith(closed + "<|im_start|>assistant\n")


def test_a_conversation_that_is_formatted_already(http: httpx.Client) -> None:
    messages = [*user("<|im_start|>user\nsay:"), *user("raw<|im_end|>\n")]
    assert prompt_of(http, messages=messages, apply_chat_template=False) == (
        "<|im_start|>user\nsay:raw<|im_end|>\n"
    )
    answer = http.post(CHAT, json={"messages": messages, "apply_chat_template": False}).json()
    assert answer["choices"][0]["message"]["content"] == "raw"
    assert answer["usage"]["prompt_tokens"] == 3 + len("user\nsay:raw\n") - 1
    for field, value in [
        ("documents", [{"text": "a"}]),
        ("chat_template_kwargs", {"a": 1}),
        ("add_generation_prompt", True),
        ("continue_final_message", True),
        ("enable_thinking", True),
        ("reasoning_effort", "low"),
    ]:
        fields = {"apply_chat_template": False, field: value}
        assert refusal(http, **fields)[:2] == (400, field)


def test_variables_of_the_template(http: httpx.Client) -> None:
    quiet = prompt_of(http, messages=user("hi"))
    assert quiet.endswith("<think>\n\n</think>\n\n")
    for fields in (
        {"enable_thinking": True},
        {"chat_template_kwargs": {"enable_thinking": True, "any_key": [1, {"a": None}]}},
        {"reasoning_effort": "high"},
    ):
        assert prompt_of(http, messages=user("hi"), **fields).endswith("<|im_start|>assistant\n")
    for name in ("messages", "tools", "documents", "add_generation_prompt", "self"):
        status, param, _ = refusal(http, chat_template_kwargs={name: []})
        assert (status, param) == (400, "chat_template_kwargs")
    clash = {"enable_thinking": False, "chat_template_kwargs": {"enable_thinking": True}}
    assert refusal(http, **clash)[:2] == (400, "enable_thinking")


def test_documents_need_a_place_in_the_template(http: httpx.Client) -> None:
    documents = [{"title": "a", "text": "b"}]
    assert refusal(http, documents=documents) == (400, "documents", "unsupported_feature")
    assert ask(http, "say:x", documents=[])["text"] == "x"


# Tokens ----------------------------------------------------------------------------------------


@pytest.mark.works("`/tokenize` and `/detokenize`, as clients of vLLM and of llama.cpp call them")
def test_counting_agrees_with_the_engine(http: httpx.Client) -> None:
    messages = [{"role": "developer", "content": "be brief"}, *user("say:é<|image|>")]
    counted = http.post("/tokenize", json={"messages": messages}).json()
    used = http.post(CHAT, json={"messages": messages}).json()["usage"]["prompt_tokens"]
    assert counted["count"] == len(counted["tokens"]) == used
    assert counted["max_model_len"] == 1024 and counted["token_strs"] is None
    counted = http.post("/tokenize", json={"prompt": "say:é"}).json()
    used = http.post(COMPLETIONS, json={"prompt": "say:é"}).json()["usage"]["prompt_tokens"]
    assert counted["count"] == used


def test_tokens_have_names_and_pieces(http: httpx.Client) -> None:
    named = http.post("/tokenize", json={"prompt": "aé", "return_token_strs": True}).json()
    assert named["tokens"] == [97, 0xC3, 0xA9]
    assert named["token_strs"] == ["a", "bytes:\\xc3", "bytes:\\xa9"]
    pieces = http.post("/tokenize", json={"content": "aé", "with_pieces": True}).json()["tokens"]
    assert pieces == [
        {"id": 97, "piece": "a"},
        {"id": 0xC3, "piece": [0xC3]},
        {"id": 0xA9, "piece": [0xA9]},
    ]
    assert http.post("/tokenize", json={"content": ""}).json()["count"] == 0


def test_tokens_become_text_again(http: httpx.Client) -> None:
    text = "naïve 日本語 👩‍👩‍👧 <|im_start|>x<think>" + "long " * 3000  # beyond the context
    tokens = http.post("/tokenize", json={"prompt": text}).json()["tokens"]
    answer = http.post("/detokenize", json={"tokens": tokens}).json()
    assert answer == {"prompt": text, "content": text}
    assert http.post("/detokenize", json={"tokens": []}).json()["prompt"] == ""
    assert http.post("/detokenize", json={"tokens": [287]}).json()["prompt"] == ""


def test_what_is_too_much_to_count_is_refused(http: httpx.Client) -> None:
    for path, body, param in [
        ("/tokenize", {"prompt": "word " * 50_000}, "prompt"),
        ("/tokenize", {"messages": user("word " * 50_000)}, "messages"),
        ("/detokenize", {"tokens": [65] * 70_000}, "tokens"),
    ]:
        error = http.post(path, json=body).json()["error"]
        assert (error["param"], error["code"]) == (param, "context_length_exceeded")


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/tokenize", {}, 400, "prompt"),
        ("/tokenize", {"prompt": "a", "content": "a"}, 400, "content"),
        ("/tokenize", {"prompt": "a", "messages": user("a")}, 400, "messages"),
        ("/tokenize", {"prompt": 1}, 400, "prompt"),
        ("/tokenize", {"messages": []}, 400, "messages"),
        ("/tokenize", {"messages": [{"role": "robot", "content": ""}]}, 400, "messages[0].role"),
        ("/tokenize", {"prompt": "a", "add_generation_prompt": True}, 400, "add_generation_prompt"),
        ("/tokenize", {"prompt": "a", "parse_special": False}, 400, "parse_special"),
        ("/tokenize", {"prompt": "a", "model": "other"}, 404, "model"),
        (
            "/tokenize",
            {"prompt": "a", "add_special": True, "add_special_tokens": False},
            400,
            "add_special",
        ),
        ("/tokenize", {"prompt": "a", "x": 1}, 400, "x"),
        ("/detokenize", {}, 400, "tokens"),
        ("/detokenize", {"tokens": [288]}, 400, "tokens"),
        ("/detokenize", {"tokens": [-1]}, 400, "tokens"),
        ("/detokenize", {"tokens": [2**70]}, 400, "tokens"),
        ("/detokenize", {"tokens": ["a"]}, 400, "tokens[0]"),
    ],
)
def test_wrong_bodies_of_the_tokenizer_are_named(
    http: httpx.Client, path: str, body: Any, status: int, param: str
) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param


# Streamed and whole ----------------------------------------------------------------------------

SHARED: dict[str, list[dict[str, Any]]] = {
    "length": [{}, {"max_tokens": 5}, {"min_tokens": 30, "max_tokens": 40}],
    "sampling": [
        {},
        {"temperature": 0},
        {"frequency_penalty": 1, "presence_penalty": -1, "repetition_penalty": 1.3},
        {"top_k": 5, "typical_p": 0.8, "min_p": 0.01, "top_p": 0.9},
        {"logit_bias": {"101": 5, "32": -100}, "bad_words": ["é", "on"]},
    ],
    "stop": [
        {},
        {"stop": ["two", "日"]},
        {"stop": ["two", "日"], "include_stop_str_in_output": True},
        {"stop_token_ids": [0x97], "ignore_eos": True, "max_tokens": 30},
    ],
    "special": [{}, {"skip_special_tokens": False}],
    "prompt": [{}, {"prompt_logprobs": 3}],
    "choices": [{}, {"n": 3}],
    "reuse": [{}, {"reuse_context": False}],
    "text": [
        {"text": "say:one two <|image|>日本 three"},
        {"text": "script:free"},
        {"text": "script:unicode"},
        {"text": "script:broken-utf8"},
    ],
}
PAIRWISE = {
    CHAT: {**SHARED, "logprobs": [{}, {"logprobs": True}, {"logprobs": True, "top_logprobs": 2}]},
    COMPLETIONS: {
        **SHARED,
        "logprobs": [{}, {"logprobs": 0}, {"logprobs": 2}],
        "echo": [{}, {"echo": True}],
    },
}


def pairwise(factors: dict[str, list[dict[str, Any]]]) -> list[dict[str, int]]:
    """Few rows in which any two values of different factors meet at least once."""
    names = sorted(factors)
    left = {
        ((a, i), (b, j))
        for a, b in combinations(names, 2)
        for i in range(len(factors[a]))
        for j in range(len(factors[b]))
    }
    rows = []
    while left:
        row = dict(min(left))
        for name in names:
            if name not in row:
                gains = [
                    sum(tuple(sorted([(name, i), one])) in left for one in row.items())
                    for i in range(len(factors[name]))
                ]
                row[name] = gains.index(max(gains))
        left -= {tuple(sorted(pair)) for pair in combinations(row.items(), 2)}
        rows.append(row)
    return rows


@pytest.mark.works("Streamed and whole answers are the same for every two features together")
@pytest.mark.parametrize("path", PAIRWISE)
def test_streamed_is_whole_for_any_two_features(http: httpx.Client, path: str) -> None:
    factors = PAIRWISE[path]
    rows = pairwise(factors)
    for row in rows:
        fields: dict[str, Any] = {}
        for name, index in row.items():
            fields |= factors[name][index]
        text = fields.pop("text")
        body = {"seed": 11, "max_tokens": 24, **fields}
        body |= {"messages": user(text)} if path == CHAT else {"prompt": [text, "say:two"]}
        stream = {"stream": True, "stream_options": {"include_usage": True}}
        answers = [http.post(path, json=body | more) for more in ({}, stream, {})]
        assert [answer.status_code for answer in answers] == [200] * 3, (body, answers[0].text)
        whole, streamed, again = told(answers[0]), folded(answers[1]), told(answers[2])
        for one in (whole, streamed, again):
            one["usage"]["prompt_tokens_details"] = None  # the second time more is cached
        assert streamed == whole, body
        assert again == whole, body
    assert len(rows) < 60

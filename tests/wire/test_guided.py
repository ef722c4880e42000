"""Structured output through the front door: bodies to `edgeserve serve`, answers validated."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jsonschema
import openai
import pydantic
import pytest

from tests.wire.folding import folded, told

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "N": {
            "type": "object",
            "properties": {
                "v": {"type": "string", "enum": ["a", "b"]},
                "kids": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/N"}},
            },
            "required": ["v", "kids"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/N",
}
GBNF = 'root ::= item ("," item)*\nitem ::= [0-9] [0-9]?\n'
TAG = {
    "type": "structural_tag",
    "triggers": ["<f="],
    "structures": [{"begin": "<f=add>", "schema": PERSON, "end": "</f>"}],
}


def schema_format(schema: Any, **more: Any) -> dict[str, Any]:
    named = {"name": "x", "schema": schema, "strict": True, **more}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def body(wish: dict[str, Any], *, chat: bool = True, **more: Any) -> dict[str, Any]:
    """A network that says whatever its random weights say, warm enough to try everything."""
    free = {"messages": [{"role": "user", "content": "script:free"}]} if chat else {"prompt": "Q: "}
    return {**free, "max_tokens": 400, "temperature": 1, "seed": 7, **wish, **more}


def choices(answer: httpx.Response) -> list[tuple[str, str]]:
    """Text and finish reason of each choice."""
    assert answer.status_code == 200, answer.text
    found = []
    for one in answer.json()["choices"]:
        text = one["message"]["content"] if "message" in one else one["text"]
        found.append((text, one["finish_reason"]))
    return found


def is_valid(text: str, schema: Any) -> bool:
    jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator)
    return True


MODES: dict[str, tuple[dict[str, Any], Any]] = {
    "json_schema": (schema_format(PERSON), lambda text: is_valid(text, PERSON)),
    "json_object": (
        {"response_format": {"type": "json_object"}, "logit_bias": {"125": 6}},
        lambda text: isinstance(json.loads(text), dict),
    ),
    "guided schema": (
        {"guided_decoding": {"json_schema": json.dumps(PERSON)}},
        lambda text: is_valid(text, PERSON),
    ),
    "guided object": (
        {"guided_decoding": {"json_object": True}, "logit_bias": {"125": 6}},
        lambda text: isinstance(json.loads(text), dict),
    ),
    "regex": (
        {"guided_decoding": {"regex": "[a-f]{4,9}-[0-9]{2}"}},
        lambda text: re.fullmatch("[a-f]{4,9}-[0-9]{2}", text),
    ),
    "ebnf": (
        {"guided_decoding": {"ebnf": GBNF}},
        lambda text: re.fullmatch("[0-9]{1,2}(,[0-9]{1,2})*", text),
    ),
    "choice": (
        {"guided_decoding": {"choice": ["yes", "no", "maybe so"]}},
        lambda text: text in ("yes", "no", "maybe so"),
    ),
    "jump": (
        {"guided_decoding": {"json_schema": PERSON, "jump_forward": True}},
        lambda text: is_valid(text, PERSON),
    ),
    "structured json": ({"structured_outputs": {"json": TREE}}, lambda text: is_valid(text, TREE)),
    "structured grammar": (
        {"structured_outputs": {"grammar": GBNF}},
        lambda text: re.fullmatch("[0-9]{1,2}(,[0-9]{1,2})*", text),
    ),
}


@pytest.mark.works(
    "Structured output: JSON Schema, JSON objects, regexes, grammars, choices, structural tags"
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chat", [True, False])
def test_every_mode_is_followed_whole_and_streamed(
    http: httpx.Client, mode: str, *, chat: bool
) -> None:
    wish, follows = MODES[mode]
    route = CHAT if chat else COMPLETIONS
    asked = body(wish, chat=chat, n=3)
    answer = http.post(route, json=asked)
    ended = [text for text, reason in choices(answer) if reason == "stop"]
    assert all(follows(text) for text in ended)
    assert ended, "none came to its end"
    options = {"stream": True, "stream_options": {"include_usage": True}}
    streamed = folded(http.post(route, json={**asked, **options}))
    assert streamed["choices"] == told(answer)["choices"]


def test_a_stop_string_does_not_cut_a_text_that_follows_a_grammar(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=body(schema_format(PERSON), stop=['"', ","], n=3))
    whole = [text for text, reason in choices(answer) if reason == "stop"]
    assert whole
    assert all(is_valid(text, PERSON) for text in whole)
    asked = body({"response_format": TAG}, stop=["e"])
    ((text, reason),) = choices(http.post(CHAT, json=asked))
    assert (reason, "e" in text) == ("stop", False)


def test_tags_open_where_the_model_says_so(http: httpx.Client) -> None:
    asked = body({"response_format": TAG})
    asked["messages"] = [{"role": "user", "content": "say:I call <f=add>{}</f> now."}]
    ((text, _),) = choices(http.post(CHAT, json=asked))
    before, _, rest = text.partition("<f=add>")
    assert before == "I call "
    assert rest.partition("</f>")[1] == "" or is_valid(rest.partition("</f>")[0], PERSON)


class Tag(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=8)
    weight: int


class Shelf(pydantic.BaseModel):
    title: str = pydantic.Field(max_length=10)
    tags: list[Tag] = pydantic.Field(max_length=2)
    best: Tag | None


@pytest.mark.works("`parse()` of the official `openai` client, with a pydantic model")
def test_the_client_parses_into_a_pydantic_model(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.parse(
        model=model,
        messages=[{"role": "user", "content": "script:free"}],
        response_format=Shelf,
        seed=3,
        max_tokens=600,
        n=3,
    )
    shelves = [one.message.parsed for one in answer.choices if one.finish_reason == "stop"]
    assert shelves
    assert all(isinstance(shelf, Shelf) for shelf in shelves)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        schema_format({"type": "array", "uniqueItems": True}),
        "response_format.json_schema.schema",
        "uniqueItems",
    ),
    (schema_format({"type": 5}), "response_format.json_schema.schema", "type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "json_schema"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "xml"),
    ({"response_format": "json_object"}, "response_format", "object"),
    ({"guided_decoding": {"regex": "(a"}}, "guided_decoding.regex", "regex"),
    ({"guided_decoding": {"regex": "(?=a)b"}}, "guided_decoding.regex", "regex"),
    ({"guided_decoding": {"regex": "a", "choice": ["b"]}}, "guided_decoding.choice", "regex"),
    ({"guided_decoding": {"shape": "a"}}, "guided_decoding.shape", "shape"),
    ({"guided_decoding": {"ebnf": "root ::= missing"}}, "guided_decoding.ebnf", "missing"),
    ({"guided_decoding": {"choice": [1]}}, "guided_decoding.choice[0]", "string"),
    ({"guided_decoding": {"json_schema": "{"}}, "guided_decoding.json_schema", "JSON"),
    ({"guided_decoding": {"regex": "a" * 140_000}}, "guided_decoding.regex", "131072"),
    (
        {"guided_decoding": {"regex": r"((\w{1,500}|\d{1,500}){1,500}x){1,500}"}},
        "guided_decoding.regex",
        "too complex",
    ),
    ({"structured_outputs": {"whitespace_pattern": " "}}, "structured_outputs", "whitespace"),
    (
        {"response_format": {"type": "json_object"}, "guided_decoding": {"regex": "a"}},
        "guided_decoding",
        "response_format",
    ),
]


@pytest.mark.parametrize("chat", [True, False])
def test_what_cannot_be_followed_is_a_400_that_names_it(http: httpx.Client, *, chat: bool) -> None:
    for wish, param, word in REFUSED:
        started = time.monotonic()
        answer = http.post(CHAT if chat else COMPLETIONS, json=body(wish, chat=chat))
        assert answer.status_code == 400, (wish, answer.text)
        error = answer.json()["error"]
        assert (error["param"] or "").startswith(param), (wish, error)
        assert word in error["message"], (wish, error)
        assert time.monotonic() - started < 1.5, param


def test_what_asks_for_nothing_changes_nothing(http: httpx.Client) -> None:
    said = [{"role": "user", "content": "script:hello"}]
    wishes: tuple[dict[str, Any], ...] = (
        {"response_format": {"type": "text"}},
        {"guided_decoding": {}},
        {"guided_decoding": {"regex": "", "choice": [], "json_object": False}},
        {"structured_outputs": {"json": None}, "response_format": {"type": "text"}},
    )
    for wish in wishes:
        answer = http.post(CHAT, json={"messages": said, **wish})
        assert choices(answer) == [("Hello! How can I help you today?", "stop")]


def test_a_hostile_guide_delays_nobody(http: httpx.Client) -> None:
    """Free answers come as quickly as alone, while guides are refused one after the other."""
    deep: Any = {"type": "string"}
    for _ in range(400):
        deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
    hostile = [
        schema_format(deep),
        {"guided_decoding": {"regex": r"(\w{1,700}|\p{L}{1,700}){1,700}y"}},
        {"guided_decoding": {"regex": "(a|b|ab)*" * 2000}},
    ]

    def ask(seconds: float) -> list[float]:
        times, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            started = time.monotonic()
            said = {"messages": [{"role": "user", "content": "say:hi"}]}
            assert http.post(CHAT, json=said).status_code == 200
            times.append(time.monotonic() - started)
        return times

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(http.post, CHAT, json=body(wish, max_tokens=3)) for wish in hostile]
        times = ask(1.0)
        answers = [one.result() for one in asking]
    assert {answer.status_code for answer in answers} <= {200, 400}
    assert max(times) < 0.7, sorted(times)[-3:]

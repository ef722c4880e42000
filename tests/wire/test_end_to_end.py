"""The whole path of a request, through the front door: HTTP to worker and back."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import openai
import pytest

from tests.serving import Server, serving
from tests.wire.conftest import OPTIONS

CHAT = "/v1/chat/completions"


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def until(check: Callable[[], bool], timeout_s: float = 20.0) -> None:
    end = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def worker_of(server: Server) -> int:
    """The process id of the server's worker."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    (child,) = children.read_text().split()
    return int(child)


def is_idle(http: httpx.Client) -> bool:
    health = http.get("/health").json()
    counts = health["scheduling"]
    return (
        health["active_requests"] == health["queued_requests"] == 0
        and counts["resident"] == counts["queued"] == 0
        and counts["completed"] + counts["cancelled"] + counts["failed"] == counts["submitted"]
    )


@pytest.mark.works("The official `openai` client, streamed and whole, logprobs and usage included")
def test_chat_streamed_and_whole(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "messages": user("script:unicode"), "seed": 1}
    whole = client.chat.completions.create(**body)
    text = whole.choices[0].message.content
    assert text == "naïve café – 日本語 👩‍👩‍👧 ✓"
    chunks = list(
        client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
    )
    parts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(parts) == text and len(parts) > 10
    assert "\ufffd" not in text
    usage = chunks[-1].usage
    assert usage.completion_tokens == whole.usage.completion_tokens == len(text.encode()) + 1
    assert usage.prompt_tokens == whole.usage.prompt_tokens


def test_a_repeated_prompt_is_reused_and_says_the_same(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "messages": user("say:" + "again and " * 20)}
    first, second, cold = (
        client.chat.completions.create(**body, extra_body=extra)
        for extra in ({}, {}, {"reuse_context": False})
    )
    assert first.choices[0].message == second.choices[0].message == cold.choices[0].message
    cached = second.usage.prompt_tokens_details.cached_tokens
    assert 0 < cached < second.usage.prompt_tokens and cached % 16 == 0
    assert cold.usage.prompt_tokens_details.cached_tokens == 0


def test_stop_strings_and_lengths(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "messages": user("say:one two three")}
    stopped = client.chat.completions.create(**body, stop=[" thr", "xyz"])
    assert stopped.choices[0].message.content == "one two"
    assert stopped.choices[0].finish_reason == "stop"
    cut = client.chat.completions.create(**body, max_tokens=5)
    assert cut.choices[0].message.content == "one t"
    assert cut.choices[0].finish_reason == "length" and cut.usage.completion_tokens == 5
    chunks = list(client.chat.completions.create(**body, stop="two", stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "one "
    empty = [c for c in chunks[1:-1] if not c.choices[0].delta.content]
    assert not empty, "only the first and last chunk are without text"


def test_completions_with_echo_and_logprobs(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(
        model=model, prompt=["say:ab", "say:xyz"], echo=True, logprobs=2, max_tokens=3, n=2
    )
    assert [choice.text for choice in answer.choices] == [
        "say:abab",
        "say:abab",
        "say:xyzxyz",
        "say:xyzxyz",
    ]
    for choice in answer.choices:
        told = choice.logprobs
        assert "".join(told.tokens) == choice.text
        assert told.text_offset == list(range(len(choice.text)))
        assert told.token_logprobs[0] is None
        assert all(value <= 0 for value in told.token_logprobs[1:])
        for token, top in zip(told.tokens[1:], told.top_logprobs[1:], strict=True):
            assert token in top and len(top) in (2, 3)


def test_logprobs_are_the_same_streamed_and_whole(client: openai.OpenAI, model: str) -> None:
    body = {
        "model": model,
        "messages": user("script:unicode"),
        "logprobs": True,
        "top_logprobs": 2,
    }
    whole = client.chat.completions.create(**body).choices[0]
    chunks = client.chat.completions.create(**body, stream=True)
    streamed = [c.choices[0].logprobs.content for c in chunks if c.choices[0].logprobs]
    assert [entry for content in streamed for entry in content] == whole.logprobs.content
    raw = bytes(byte for entry in whole.logprobs.content for byte in entry.bytes)
    assert raw.decode() == whole.message.content


def test_several_choices_with_a_seed_replay(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "messages": user("free=1"), "seed": 7, "n": 3, "max_tokens": 12}
    first, second = (client.chat.completions.create(**body) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in second.choices]


def test_bad_input_never_reaches_the_worker(scripted_checkpoint: Path, wire_cache: Path) -> None:
    """On a server of its own: after one good request the worker has seen exactly one."""
    with serving(str(scripted_checkpoint), *OPTIONS, cache=wire_cache) as server:
        server.wait_ready()
        with httpx.Client(base_url=server.url, timeout=30) as http:
            model = http.get("/v1/models").json()["data"][0]["id"]
            refuse_bad_input(http, model)
            good = {"model": model, "messages": user("hi"), "max_tokens": 1}
            assert http.post(CHAT, json=good).status_code == 200
            until(lambda: http.get("/health").json()["scheduling"]["completed"] >= 1)
            counts = http.get("/health").json()["scheduling"]
            assert (counts["submitted"], counts["completed"]) == (1, 1)


def refuse_bad_input(http: httpx.Client, model: str) -> None:
    chat = {"model": model, "messages": user("hi")}
    bad: list[tuple[object, int, str | None, str]] = [
        (b"{", 400, None, "invalid_json"),
        ({**chat, "temperature": "hot"}, 400, "temperature", "invalid_type"),
        ({**chat, "temprature": 1}, 400, "temprature", "unknown_parameter"),
        ({**chat, "model": "other"}, 404, "model", "model_not_found"),
        ({**chat, "messages": user("x" * 2000)}, 400, "messages", "context_length_exceeded"),
        (json.dumps({**chat, "messages": user("\ud83d")}).encode(), 400, None, "invalid_unicode"),
        (b" " * (8 * 1024**2 + 1), 413, None, "body_too_large"),
    ]
    for body, status, param, code in bad:
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = http.post(CHAT, **sent)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code)
        assert param is None or error["param"] == param


def test_a_model_without_a_chat_template_completes_and_refuses_to_chat(
    scripted_plugin: Path, wire_cache: Path, tmp_path: Path
) -> None:
    del scripted_plugin
    from edgeserve_scripted import write_checkpoint

    checkpoint = write_checkpoint(tmp_path / "raw", chat_template=None)
    with serving(str(checkpoint), *OPTIONS, cache=wire_cache) as server:
        server.wait_ready()
        with httpx.Client(base_url=server.url, timeout=30) as http:
            answer = http.post(CHAT, json={"messages": user("hi")})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (400, "no_chat_template")
            assert error["param"] == "messages" and "--chat-template" in error["message"]
            raw = http.post("/v1/completions", json={"prompt": "hi", "max_tokens": 2})
            assert raw.status_code == 200
            until(lambda: http.get("/health").json()["scheduling"]["completed"] >= 1)
            assert http.get("/health").json()["scheduling"]["submitted"] == 1


def one_request(http: httpx.Client, model: str, number: int) -> bool:
    """A random request; every fifth hangs up half-way. Whether its answer is right."""
    draw = random.Random(number)
    text = "".join(draw.choice("abc xyz") for _ in range(draw.randint(5, 80)))
    stream = number % 2 == 0
    body = {"model": model, "messages": user(f"delay_ms=0.1 say:{text}"), "stream": stream}
    if number % 5 == 0:
        data = json.dumps(body).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
        with socket.create_connection((http.base_url.host, http.base_url.port)) as sock:
            sock.sendall(head.encode() + data)
            if stream:
                sock.recv(4096)
            time.sleep(draw.random() * 0.05)
        return True
    answer = http.post(CHAT, json=body)
    if not stream:
        return answer.status_code == 200 and (
            answer.json()["choices"][0]["message"]["content"] == text
        )
    *frames, done, empty = answer.text.split("\n\n")
    deltas = [json.loads(frame[6:])["choices"][0]["delta"] for frame in frames]
    said = "".join(delta.get("content", "") for delta in deltas)
    return said == text and (done, empty) == ("data: [DONE]", "")


@pytest.mark.works("Clients that hang up, in streams or whole answers, leave nothing behind")
def test_two_hundred_requests_a_fifth_hung_up(http: httpx.Client, model: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        rights = list(pool.map(lambda i: one_request(http, model, i), range(200)))
    assert all(rights)
    until(lambda: is_idle(http))
    lines = dict(
        line.split(" ")
        for line in http.get("/metrics").text.splitlines()
        if line.startswith("edgeserve_cache_") and "{" not in line
    )
    free, cached, total = (
        float(lines[f"edgeserve_cache_{name}_pages"]) for name in ("free", "cached", "total")
    )
    assert free + cached == total > 0


@pytest.mark.works("A worker that is killed in a stream: an error event, then a new worker")
def test_kill_9_of_the_worker_in_a_stream(scripted_checkpoint: Path, wire_cache: Path) -> None:
    with serving(str(scripted_checkpoint), *OPTIONS, cache=wire_cache) as server:
        server.wait_ready()
        body = {"messages": user("delay_ms=5 script:endless"), "stream": True}
        with httpx.Client(base_url=server.url, timeout=30) as client:
            worker = worker_of(server)
            statuses: list[int] = []
            with client.stream("POST", CHAT, json=body) as answer:
                frames = answer.iter_text()
                while '"content":"w"' not in next(frames):
                    pass
                os.kill(worker, signal.SIGKILL)
                rest = "".join(frames)
                statuses.append(client.get("/health/ready").status_code)
            *_, error, done, empty = rest.split("\n\n")
            assert json.loads(error[6:])["error"]["code"] == "engine_unavailable"
            assert (done, empty) == ("data: [DONE]", "")
            assert statuses == [503]
            until(lambda: client.get("/health/ready").status_code == 200)
            assert worker_of(server) != worker
            good = client.post(CHAT, json={"messages": user("say:back")})
            assert good.json()["choices"][0]["message"]["content"] == "back"
        assert server.stop(signal.SIGTERM) == 0


def test_a_drain_finishes_what_runs(scripted_checkpoint: Path, wire_cache: Path) -> None:
    with (
        serving(str(scripted_checkpoint), *OPTIONS, cache=wire_cache) as server,
        httpx.Client(timeout=30) as client,
    ):
        server.wait_ready()
        body = {"messages": user("delay_ms=20 say:" + "x" * 100), "stream": True}
        with client.stream("POST", server.url + CHAT, json=body) as answer:
            frames = answer.iter_text()
            next(frames)
            server.process.send_signal(signal.SIGTERM)
            until(lambda: client.get(f"{server.url}/health/ready").status_code == 503)
            text = "".join(frames)
        assert text.endswith("data: [DONE]\n\n") and "error" not in text
        assert server.process.wait(30) == 0

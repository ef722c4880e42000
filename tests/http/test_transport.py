"""What HTTP promises beside the protocol: hang-ups, limits, keys, ids, loading, draining."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from edgeserve.errors import StartError
from edgeserve.http.listen import bind
from tests.http.stand_in import NAME, Running, StandIn, running, say

CHAT = "/v1/chat/completions"


def chat(text: str, **more: object) -> dict[str, object]:
    return {"model": NAME, "messages": [{"role": "user", "content": text}], **more}


def raw_request(body: bytes, path: str = CHAT, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def connected(server: Running, data: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(data)
        yield sock


def read_until(sock: socket.socket, mark: bytes) -> bytes:
    data = b""
    while mark not in data:
        part = sock.recv(65536)
        assert part, f"the connection closed after {data[-200:]!r}"
        data += part
    return data


# Hang-ups ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("waits", ["delay_s", "queue_s"])
def test_a_hang_up_frees_the_row_at_once(server: Running, stream: bool, waits: str) -> None:
    """Streams and whole answers, while tokens are made and while the request is queued."""
    replay = server.front.replay
    before, answers = len(replay.cancelled), server.application.serving.drain.answers
    body = json.dumps(chat(say("a", "b", **{waits: 60}), stream=stream)).encode()
    with connected(server, raw_request(body)):
        if waits == "queue_s":
            server.until(lambda: replay.waiting == 1)
        else:
            server.until(lambda: len(answers) == 1)
        left = time.monotonic()
    server.until(lambda: len(replay.cancelled) == before + 1)
    assert time.monotonic() - left < 0.5
    server.until(lambda: not answers and replay.waiting == 0)


def test_a_hang_up_after_some_tokens_frees_the_row(server: Running) -> None:
    replay = server.front.replay
    before = len(replay.cancelled)
    body = json.dumps(chat(say(*"abcdefgh", delay_s=0.02), stream=True)).encode()
    with connected(server, raw_request(body)) as sock:
        read_until(sock, b'"content":"b"')
    server.until(lambda: len(replay.cancelled) == before + 1)


def test_a_hang_up_inside_the_body_starts_nothing(server: Running) -> None:
    before = len(server.front.replay.requests)
    data = raw_request(json.dumps(chat(say("a"))).encode())
    with connected(server, data[:-10]):
        server.until(lambda: server.application.serving.drain.active == 1)
    server.until(lambda: server.application.serving.drain.active == 0)
    assert len(server.front.replay.requests) == before


def test_many_hang_ups_leave_nothing(server: Running, http: httpx.Client) -> None:
    def one(number: int) -> None:
        body = json.dumps(chat(say(*"abcdefghij", delay_s=0.01), stream=number % 2 == 0)).encode()
        with connected(server, raw_request(body)):
            time.sleep(number % 7 * 0.01)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drain = server.application.serving.drain
    server.until(lambda: drain.active == 0 and not drain.answers)
    assert http.post(CHAT, json=chat(say("ok"))).status_code == 200


def test_a_slow_reader_holds_the_encoding_back_and_gets_everything(server: Running) -> None:
    before = len(server.front.replay.requests)
    body = json.dumps(chat(say("x" * 1000, times=12_000), stream=True)).encode()
    with connected(server, raw_request(body)) as sock:
        server.until(lambda: len(server.front.replay.requests) > before)
        time.sleep(0.5)  # the transport's and the kernel's buffers are full now
        parts, tail = [], b""
        while not tail.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
            parts.append(sock.recv(1 << 20))
            tail = (tail + parts[-1])[-64:]
    assert b"".join(parts).count(b"x" * 999) == 12_000


def test_a_reader_that_stopped_and_left_leaves_nothing(server: Running) -> None:
    """The hang-up comes while the response waits for the transport, not for a token."""
    answers = server.application.serving.drain.answers
    body = json.dumps(chat(say("x" * 1000, times=20_000), stream=True)).encode()
    with connected(server, raw_request(body)):
        server.until(lambda: len(answers) == 1)
        time.sleep(0.5)
        assert len(answers) == 1
    server.until(lambda: not answers and server.application.serving.drain.active == 0)


# Streams -------------------------------------------------------------------------------------


def test_frames_are_events_and_the_first_comes_while_the_model_works(server: Running) -> None:
    with (
        httpx.Client(base_url=server.url, timeout=10) as client,
        client.stream("POST", CHAT, json=chat(say("a", delay_s=0.5), stream=True)) as answer,
    ):
        start = time.monotonic()
        parts = answer.iter_raw()
        first = next(parts)
        assert time.monotonic() - start < 0.4 and b'"role":"assistant"' in first
        text = first + b"".join(parts)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-trtmc-streaming"] == "incremental"
    frames = text.split(b"\n\n")
    assert frames[-2:] == [b"data: [DONE]", b""]
    for frame in frames[:-2]:
        assert frame.startswith(b"data: ") and b"\n" not in frame
        json.loads(frame[6:])


def test_an_error_event_ends_a_broken_stream(http: httpx.Client) -> None:
    text = http.post(CHAT, json=chat(say("a", "b", fail_at=1), stream=True)).text
    *_, error, done, empty = text.split("\n\n")
    assert json.loads(error[6:])["error"] == {
        "message": "the worker died",
        "type": "service_unavailable_error",
        "param": None,
        "code": "engine_unavailable",
    }
    assert (done, empty) == ("data: [DONE]", "")


def test_a_broken_whole_answer_has_its_status(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=chat(say("a", "b", fail_at=1)))
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "engine_unavailable"


def test_a_refusal_comes_before_the_headers_of_a_stream(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=chat(say(refuse="busy"), stream=True))
    assert answer.status_code == 429 and answer.headers["retry-after"] == "7"
    assert answer.json()["error"]["type"] == "rate_limit_error"


def test_a_fault_is_a_500_that_tells_nothing(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=chat(say(refuse="fault")))
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "secret" not in answer.text and "ZeroDivision" not in answer.text


def test_usage_in_every_chunk_when_asked(http: httpx.Client) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = chat(say("ab", "c"), stream=True, stream_options=options)
    frames = http.post(CHAT, json=body).text.split("\n\n")[:-2]
    counts = [json.loads(frame[6:])["usage"]["completion_tokens"] for frame in frames]
    assert counts == [0, 2, 3, 4, 4]


# Headers -------------------------------------------------------------------------------------


def test_headers_tell_seed_and_clipping(http: httpx.Client) -> None:
    answer = http.post(CHAT, json=chat(say("a"), seed=5, max_tokens=100000))
    assert answer.headers["x-edgeserve-seed"] == "5"
    assert int(answer.headers["x-edgeserve-max-tokens"]) < 4096
    answer = http.post(CHAT, json=chat(say("a"), max_tokens=5))
    assert int(answer.headers["x-edgeserve-seed"]) >= 0
    assert "x-edgeserve-max-tokens" not in answer.headers


@pytest.mark.parametrize("path", ["/health", "/nothing", "/v1/models", "/"])
def test_a_valid_request_id_is_kept(http: httpx.Client, path: str) -> None:
    answer = http.get(path, headers={"X-Request-ID": "a.b_c:d/e-1"})
    assert answer.headers["x-request-id"] == "a.b_c:d/e-1"


def test_request_ids_are_made(http: httpx.Client) -> None:
    first, second = (http.get("/health").headers["x-request-id"] for _ in range(2))
    assert first != second and first.startswith("req-") and len(first) == 36


@pytest.mark.parametrize("given", ["", "a b", "-a", "a" * 129, "é", "a\tb"])
def test_an_invalid_request_id_is_refused(http: httpx.Client, given: str) -> None:
    answer = http.get("/health", headers=[("X-Request-ID", given.encode())])
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "X-Request-ID"
    assert answer.headers["x-request-id"] != given


def test_a_repeated_request_id_is_refused(http: httpx.Client) -> None:
    answer = http.get("/health", headers=[("X-Request-ID", "a"), ("X-Request-ID", "a")])
    assert answer.status_code == 400


# Routes --------------------------------------------------------------------------------------


def test_unknown_routes_and_methods_answer_in_json(http: httpx.Client) -> None:
    answer = http.get("/v1/nothing")
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "not_found"
    answer = http.get(CHAT)
    assert answer.status_code == 405 and "POST" in answer.headers["allow"]
    assert answer.json()["error"]["code"] == "method_not_allowed"


def test_head_and_options(http: httpx.Client) -> None:
    for path in ("/", "/health", "/metrics", "/v1/models"):
        answer = http.head(path)
        assert answer.status_code == 200 and not answer.content
    answer = http.options(CHAT)
    assert answer.status_code == 200 and "POST" in answer.headers["allow"]


def test_paths_with_a_slash_at_the_end(http: httpx.Client) -> None:
    assert http.get("/v1/models/").status_code == 200


# Bodies --------------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    with running(max_body_bytes=1000) as server:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n"
        with connected(server, f"{head}Expect: 100-continue\r\n\r\n".encode()) as sock:
            answer = read_until(sock, b"}}")
        assert answer.startswith(b"HTTP/1.1 413 ") and b"--max-body-bytes" in answer
        assert b"body_too_large" in answer


def test_a_streamed_body_is_counted() -> None:
    with running(max_body_bytes=1000) as server, httpx.Client(base_url=server.url) as client:
        answer = client.post(CHAT, content=iter([b" " * 600] * 3))
        assert answer.status_code == 413
        text = json.dumps(chat(say("a"))).encode()
        answer = client.post(CHAT, content=iter([text[:10], text[10:]]))
        assert answer.status_code == 200
        assert client.post(CHAT, content=text.ljust(1000)).status_code == 200
        assert client.post(CHAT, content=text.ljust(1001)).status_code == 413


# Keys ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    with (
        running(api_keys=("one", "zwei-é"), protect_metrics=True) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("Authorization", b"Bearer one")], 200),
        ([("Authorization", b"bearer  one")], 200),
        ([("x-api-key", b"one")], 200),
        ([("x-api-key", "zwei-é".encode())], 200),
        ([("x-api-key", b"\xff\xfe")], 401),
        ([("Authorization", b"Bearer \xe9")], 401),
        ([("Authorization", b"Basic one")], 401),
        ([("Authorization", b"Bearer")], 401),
        ([("Authorization", b"Bearer on")], 401),
        ([("Authorization", b"Bearer wrong"), ("x-api-key", b"one")], 200),
    ],
)
def test_keys(guarded: httpx.Client, headers: list[tuple[str, bytes]], status: int) -> None:
    answer = guarded.get("/v1/models", headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.json()["error"]["type"] == "authentication_error"
        assert answer.headers["www-authenticate"] == "Bearer"


def test_what_needs_no_key(guarded: httpx.Client) -> None:
    assert guarded.get("/health").status_code == 200
    assert guarded.get("/health/ready").status_code == 200
    assert guarded.get("/openapi.json").status_code == 200
    assert guarded.options(CHAT).status_code == 200
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/metrics", headers={"x-api-key": "one"}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["//v1/models", "/v1/models/", "///v1/chat/completions", "/v1/%6dodels", "//metrics"]
    + ["/tokenize", "//detokenize/"],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_no_way_to_write_a_path_avoids_the_key(
    guarded: httpx.Client, path: str, method: str
) -> None:
    target = str(guarded.base_url).rstrip("/") + path
    assert guarded.request(method, target).status_code == 401


def test_without_keys_headers_are_ignored(http: httpx.Client) -> None:
    assert http.get("/v1/models", headers={"x-api-key": "any"}).status_code == 200


# Health --------------------------------------------------------------------------------------


def test_health(http: httpx.Client) -> None:
    body = http.get("/health").json()
    assert body["status"] == "healthy" and body["model"] == NAME
    assert body["capabilities"]["max_model_len"] == 4096
    assert body["scheduling"]["submitted"] == 0
    assert body["engine"]["state"] == "ready"
    assert (body["active_requests"], body["queued_requests"]) == (0, 0)
    assert http.get("/health/live").json() == {"status": "live"}
    assert http.get("/health/ready").json()["status"] == "ready"


def test_while_loading_only_health_answers() -> None:
    front = StandIn()
    front.state, model, front.model = "loading", front.model, None
    with running(front) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/health").status_code == 503
        assert client.get("/health").json()["status"] == "loading"
        assert client.get("/health/ready").status_code == 503
        assert client.get("/health/live").status_code == 200
        assert client.get("/metrics").status_code == 200
        for answer in (client.get("/v1/models"), client.post(CHAT, content=b"x")):
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "model_loading"
            assert int(answer.headers["retry-after"]) >= 1
        front.model, front.state = model, "ready"
        assert client.post(CHAT, json=chat(say("a"))).status_code == 200


def test_a_failed_engine_is_told_everywhere() -> None:
    front = StandIn()
    front.state, front.reason = "failed", "the worker died 4 times"
    with running(front) as server, httpx.Client(base_url=server.url) as client:
        for path in ("/health", "/health/ready"):
            assert client.get(path).status_code == 503
            assert client.get(path).json()["reason"] == "the worker died 4 times"
        answer = client.post(CHAT, json=chat(say("a")))
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "engine_unavailable"
        assert answer.json()["error"]["message"] == "the worker died 4 times"


# Metrics -------------------------------------------------------------------------------------


def test_metrics_count_everything_and_tell_nothing() -> None:
    from prometheus_client.parser import text_string_to_metric_families as parse

    with running() as server, httpx.Client(base_url=server.url) as client:
        client.post(CHAT, json=chat(say("secret", cached=2)))
        client.post(CHAT, content=b"{")
        client.get("/secret")
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "secret" not in answer.text
    samples = {
        (sample.name, sample.labels.get("route"), sample.labels.get("status")): sample.value
        for family in parse(answer.text)
        for sample in family.samples
    }
    for prefix in ("edgeserve", "trtmc_server"):
        assert samples[f"{prefix}_requests_total", CHAT, "200"] == 1
        assert samples[f"{prefix}_requests_total", CHAT, "400"] == 1
        assert samples[f"{prefix}_requests_total", "unmatched", "404"] == 1
    for name, value in {
        "edgeserve_ready": 1,
        "edgeserve_cached_tokens_total": 2,
        "edgeserve_completion_tokens_total": 7,
        "edgeserve_time_to_first_token_seconds_count": 1,
        "edgeserve_inter_token_seconds_count": 1,
        "edgeserve_end_to_end_seconds_count": 1,
        "edgeserve_queue_seconds_count": 1,
        "edgeserve_engine_preemptions_total": 0,
        "edgeserve_cache_free_pages": 0,
        "trtmc_server_ready": 1,
        "trtmc_server_queue_depth": 0,
        "trtmc_server_active_requests": 0,
        "trtmc_server_busy_replicas": 0,
        "trtmc_server_queue_duration_seconds_count": 1,
        "trtmc_server_inference_duration_seconds_count": 1,
        "trtmc_server_task_setup_duration_seconds_count": 1,
        "trtmc_server_task_prefill_duration_seconds_count": 1,
        "trtmc_server_task_decode_duration_seconds_count": 1,
    }.items():
        assert samples[name, None, None] == value, name


# Start and end -------------------------------------------------------------------------------


def test_a_port_in_use_is_one_sentence(server: Running) -> None:
    with pytest.raises(StartError, match=f"port {server.port} on 127.0.0.1 is in use; .*--port"):
        bind("127.0.0.1", server.port)


def test_a_drain_lets_requests_end_and_takes_no_more() -> None:
    with running() as server, httpx.Client(base_url=server.url, timeout=10) as client:
        body = chat(say("a", delay_s=1.5), stream=True)
        assert client.get("/health/ready").status_code == 200
        with client.stream("POST", CHAT, json=body) as answer:
            server.stop()
            server.until(lambda: server.application.serving.drain.draining)
            assert client.get("/health/ready").status_code == 503
            assert client.get("/health/live").status_code == 200
            refused = client.post(CHAT, json=chat(say("a")))
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "server_unavailable"
            assert answer.read().endswith(b"data: [DONE]\n\n")
        server.join()
        assert b'"content":"a"' in answer.content and b"error" not in answer.content


def test_a_second_signal_ends_streams_with_an_error_event() -> None:
    with running() as server, httpx.Client(base_url=server.url, timeout=10) as client:
        with client.stream("POST", CHAT, json=chat(say("a", delay_s=60), stream=True)) as answer:
            server.stop()
            server.stop()
            text = answer.read()
        server.join()
    assert b'"error"' in text and text.endswith(b"data: [DONE]\n\n")


def test_the_end_of_the_drain_timeout_answers_whole_requests() -> None:
    with running(drain_timeout_s=0.2) as server, httpx.Client(base_url=server.url) as client:
        answers: list[httpx.Response] = []
        body = chat(say("a", delay_s=60))
        thread = threading.Thread(
            target=lambda: answers.append(client.post(CHAT, json=body, timeout=10))
        )
        thread.start()
        server.until(lambda: len(server.application.serving.drain.answers) == 1)
        server.stop()
        thread.join()
        assert "error" in answers[0].json()

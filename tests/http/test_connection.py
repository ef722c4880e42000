"""What reaches the server before it is a request: heads, framing, slow and half-sent requests."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

from edgeserve.http import connection, hangup
from tests.http.stand_in import NAME, Running, running, say

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": NAME, "messages": [{"role": "user", "content": say("ok")}]}).encode()


def request(*headers: str, body: bytes = BODY, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", f"Content-Length: {size}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def ask(server: Running, *parts: bytes) -> tuple[int, dict[str, Any]]:
    """Status and body of the one answer to these bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        for part in parts:
            sock.sendall(part)
            time.sleep(0.02)
        return answer(sock)


def answer(sock: socket.socket) -> tuple[int, dict[str, Any]]:
    data = b""
    while b"\r\n\r\n" not in data:
        part = sock.recv(65536)
        assert part, f"the connection closed after {data!r}"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += sock.recv(65536)
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("name", ["Upgrade", "upgrade"])
def test_an_offer_of_http_2_keeps_the_body(server: Running, name: str) -> None:
    """Java's client sends these headers with every first request."""
    headers = ["Connection: Upgrade, HTTP2-Settings", f"{name}: h2c", "HTTP2-Settings: AAMAA"]
    whole = request(*headers)
    head, body = whole[: -len(BODY)], whole[-len(BODY) :]
    for parts in ((whole,), (head, body), (head + body[:9], body[9:])):
        status, told = ask(server, *parts)
        assert status == 200 and told["object"] == "chat.completion"


@pytest.mark.parametrize(
    "headers",
    [
        ["X-Long: " + "a" * connection.HEAD_BYTES],
        [f"X-{number}: a" for number in range(10_000)],
    ],
)
def test_a_head_over_its_limit_is_refused(server: Running, headers: list[str]) -> None:
    status, told = ask(server, request(*headers))
    assert (status, told["error"]["code"]) == (431, "headers_too_large")


def test_a_large_body_behind_a_split_head_counts_for_nothing(server: Running) -> None:
    whole = request(body=BODY + b" " * connection.HEAD_BYTES * 2)
    cut = whole.index(b"\r\n\r\n") + 3
    assert ask(server, whole[:cut], whole[cut:])[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01 what a TLS client says first\r\n\r\n",
        request(length=10),
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http_is_an_error_in_json(server: Running, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(data)
        status, told = answer(sock)
    assert status == 400 and set(told["error"]) == {"message", "type", "param", "code"}


def test_a_head_that_does_not_come_is_given_up(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    for start in (b"", b"POST /v1/comp"):
        status, told = ask(server, start)
        assert (status, told["error"]["code"]) == (408, "request_too_slow")


def test_a_body_that_does_not_come_is_given_up(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hangup, "SILENCE_S", 0.1)
    status, told = ask(server, request(body=b"", length=100))
    assert (status, told["error"]["code"]) == (408, "request_too_slow")
    status, told = ask(server, request(body=BODY[:9], length=100))
    assert (status, told["error"]["code"]) == (408, "request_too_slow")
    assert ask(server, request())[0] == 200


def test_half_a_request_does_not_hold_up_a_drain() -> None:
    with (
        running(drain_timeout_s=60.0) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock,
    ):
        sock.sendall(request(body=BODY[:9], length=100))
        server.until(lambda: server.application.serving.drain.active == 1)
        server.stop()
        status, told = answer(sock)
        assert (status, told["error"]["code"]) == (503, "server_unavailable")


def test_a_packed_body_is_refused_by_name(server: Running) -> None:
    status, told = ask(server, request("Content-Encoding: gzip"))
    assert (status, told["error"]["param"]) == (400, "Content-Encoding")
    assert ask(server, request("Content-Encoding: identity"))[0] == 200

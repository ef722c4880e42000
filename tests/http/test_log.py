"""Lines are `key=value`; no text of a request or an answer is ever in one."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator

import httpx
import pytest

from edgeserve import log
from tests.http.stand_in import NAME, running, say


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    kept = {
        name: (logger.handlers[:], logger.propagate, logger.level)
        for name in ("edgeserve", "uvicorn.error")
        for logger in [logging.getLogger(name)]
    }
    log.configure("debug", stream)
    yield stream
    for name, (handlers, propagate, level) in kept.items():
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_a_line_has_one_event_with_quoted_values(lines: io.StringIO) -> None:
    log.Log("part").info("thing", a=1, b=True, c=None, d='x "y"\n', e=0.5, f="plain/path")
    line = lines.getvalue()
    assert line.endswith(
        'level=info part=part event=thing a=1 b=true c=- d="x \\"y\\"\\u000a" e=0.5 f=plain/path\n'
    )


def test_a_fault_tells_type_and_place_alone(lines: io.StringIO) -> None:
    try:
        raise ValueError("secret")
    except ValueError as error:
        log.Log("part").fault("broken", error, id="x")
    assert "error=ValueError at=test_log.py:" in lines.getvalue()
    assert "secret" not in lines.getvalue()


def test_no_text_reaches_the_log(lines: io.StringIO) -> None:
    """Prompts, answers, keys, headers, paths and bad bodies that hold a canary."""
    canary = "canary-7311"

    def chat(text: str, **more: object) -> dict[str, object]:
        return {"model": NAME, "messages": [{"role": "user", "content": text}], **more}

    with (
        running(api_keys=(canary,), access_log=True) as server,
        httpx.Client(base_url=server.url, headers={"x-api-key": canary}) as client,
    ):
        path = "/v1/chat/completions"
        assert client.post(path, json=chat(say(canary))).status_code == 200
        assert canary in client.post(path, json=chat(say(canary), stream=True)).text
        assert client.post(path, json=chat(say(canary, refuse="fault"))).status_code == 500
        assert client.post(path, json=chat(canary, unknown=canary)).status_code == 400
        assert client.post(path, content=canary).status_code == 400
        assert client.post(path, json={canary: canary}).status_code == 400
        assert client.get(f"/{canary}?x={canary}").status_code == 404
        assert client.get(f"/v1/models/{canary}").status_code == 404
        assert client.get("/v1/models", headers={"x-api-key": "no"}).status_code == 401
        metrics = client.get("/metrics").text
    text = lines.getvalue()
    assert text.count("event=request") == 10
    assert "route=/v1/chat/completions status=200" in text
    assert canary not in text and canary not in metrics


def test_a_cut_answer_is_logged_with_the_tokens_that_were_sent(lines: io.StringIO) -> None:
    body = {
        "model": NAME,
        "messages": [{"role": "user", "content": say("abc", "de", "f", delay_s=0.3)}],
        "stream": True,
    }
    with running(access_log=True) as server, httpx.Client(base_url=server.url) as client:
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            next(text for text in answer.iter_text() if "abc" in text)
        for _ in range(500):
            if "event=request" in lines.getvalue():
                break
            time.sleep(0.01)
    (line,) = [line for line in lines.getvalue().splitlines() if "event=request" in line]
    assert "status=499" in line and "completion_tokens=3 " in line

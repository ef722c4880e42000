"""A streamed answer of either route put together again, for comparison with a whole one."""

from __future__ import annotations

import json
from typing import Any

import httpx


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    *frames, done, empty = answer.text.split("\n\n")
    assert (done, empty) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def folded(answer: httpx.Response) -> dict[str, Any]:
    """What a stream with `include_usage` says, in the form of `told`."""
    body: dict[str, Any] = {"choices": {}}
    for event in events(answer):
        assert "error" not in event, event
        for choice in event["choices"]:
            _add(body["choices"].setdefault(choice["index"], _empty()), choice)
        if event.get("usage"):
            body["usage"] = event["usage"]
        if "prompt_logprobs" in event:
            body["prompt_logprobs"] = event["prompt_logprobs"]
    return body


def told(answer: httpx.Response) -> dict[str, Any]:
    """What a whole answer says: choices by index, usage, prompt logprobs."""
    whole = answer.json()
    body: dict[str, Any] = {"choices": {}, "usage": whole["usage"]}
    for choice in whole["choices"]:
        _add(body["choices"].setdefault(choice["index"], _empty()), choice)
    if "prompt_logprobs" in whole:
        body["prompt_logprobs"] = whole["prompt_logprobs"]
    return body


def _empty() -> dict[str, Any]:
    return {"text": "", "reasoning": "", "calls": [], "logprobs": [], "finish": None}


def _add(choice: dict[str, Any], part: dict[str, Any]) -> None:
    message = part.get("delta") or part.get("message") or {}
    choice["text"] += part.get("text") or message.get("content") or ""
    choice["reasoning"] += message.get("reasoning_content") or ""
    for index, call in enumerate(message.get("tool_calls") or []):
        _add_call(choice["calls"], call.get("index", index), call)
    choice["finish"] = part["finish_reason"] or choice["finish"]
    if "prompt_logprobs" in part:
        choice["prompt_logprobs"] = part["prompt_logprobs"]
    logprobs = part.get("logprobs") or {}
    if "content" in logprobs:
        choice["logprobs"] += logprobs["content"]
    elif logprobs:
        names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
        choice["logprobs"] += list(zip(*(logprobs[name] for name in names), strict=True))


def _add_call(calls: list[dict[str, str]], index: int, part: dict[str, Any]) -> None:
    """Ids are fresh in every answer, so that only their form is compared."""
    if index == len(calls):
        assert part["type"] == "function" and part["id"].startswith("call_")
        calls.append({"name": part["function"]["name"], "arguments": ""})
    calls[index]["arguments"] += part["function"]["arguments"]

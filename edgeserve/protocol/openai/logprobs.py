"""Logprob objects of both of OpenAI's text APIs. JSON has no infinity: the floor is -9999."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edgeserve.protocol.chunk import Told
from edgeserve.protocol.vocabulary import Vocabulary

FLOOR = -9999.0


def floored(logprob: float) -> float:
    return max(logprob, FLOOR)


def chat_logprobs(told: Iterable[Told], vocabulary: Vocabulary) -> dict[str, Any]:
    def entry(token: int, logprob: float | None) -> dict[str, Any]:
        return {
            "token": vocabulary.name(token),
            "logprob": None if logprob is None else floored(logprob),
            "bytes": list(vocabulary.raw(token)),
        }

    content = [
        {**entry(one.token, one.logprob), "top_logprobs": [entry(*alt) for alt in one.top]}
        for one in told
    ]
    return {"content": content, "refusal": None}


def completion_logprobs(told: Sequence[Told], vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "tokens": [vocabulary.name(one.token) for one in told],
        "token_logprobs": [None if one.logprob is None else floored(one.logprob) for one in told],
        "top_logprobs": [_top(one, vocabulary) for one in told],
        "text_offset": [one.offset for one in told],
    }


def _top(one: Told, vocabulary: Vocabulary) -> dict[str, float] | None:
    """The alternatives, and the chosen token also when it is not among them."""
    if one.logprob is None:
        return None
    names: dict[str, float] = {}
    for token, logprob in (*one.top, (one.token, one.logprob)):
        names.setdefault(vocabulary.name(token), floored(logprob))
    return names

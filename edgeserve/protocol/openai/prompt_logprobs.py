"""`prompt_logprobs` in the shape of vLLM: for each prompt token an object of token id to logprob,
rank and text, the token itself first; null for the first token, which nothing precedes.
"""

from __future__ import annotations

from typing import Any

import orjson

from edgeserve.generation import TokenLogprob
from edgeserve.pipeline.answer import Answer
from edgeserve.protocol.openai.logprobs import floored
from edgeserve.protocol.vocabulary import Vocabulary

Entry = dict[str, dict[str, Any]]


class PromptTold:
    """The prompts of one answer, with `alternatives` likeliest tokens beside each."""

    def __init__(self, answer: Answer, vocabulary: Vocabulary, alternatives: int) -> None:
        self._answer = answer
        self._vocabulary = vocabulary
        self._alternatives = alternatives

    def of(self, prompt: int) -> list[Entry | None]:
        """Complete once the first piece of the prompt has come."""
        told = self._answer.prompt_logprobs.get(prompt, ())
        return [None, *(self._entry(one) for one in told)]

    def json(self, prompt: int) -> bytes:
        return orjson.dumps(self.of(prompt))

    def _entry(self, one: TokenLogprob) -> Entry:
        """The rank is null for a token that is not among those the engine compared."""
        ranks = {token: rank for rank, (token, _) in enumerate(one.top, 1)}
        pairs = {one.token: one.logprob, **dict(one.top[: self._alternatives])}
        return {
            str(token): {
                "logprob": floored(logprob),
                "rank": ranks.get(token),
                "decoded_token": self._vocabulary.name(token),
            }
            for token, logprob in pairs.items()
        }

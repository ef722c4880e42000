"""What chat and completions have in common: sampling, limits, streaming."""

from __future__ import annotations

from typing import Any

import msgspec

from edgeserve.errors import InvalidRequest
from edgeserve.protocol.openai.later import Later
from edgeserve.sampling import SURFACES, SamplingParams


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: bool | None = None  # padding against traffic analysis: there is none


class Request(Later, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Null means unset, for every field. Ranges are checked by `SamplingParams`."""

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None  # token id, as JSON writes keys, to bias
    bad_words: list[str] | None = None
    seed: int | None = None
    n: int | None = None
    best_of: int | None = None
    min_tokens: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    skip_special_tokens: bool | None = None
    prompt_logprobs: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: dict[str, Any] | None = None
    guided_decoding: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    reuse_context: bool | None = None
    cache_generated_tokens: bool | None = None
    priority: int | None = None
    cache_salt: str | None = None

    @property
    def streams(self) -> bool:
        return bool(self.stream)

    @property
    def usage(self) -> Usage:
        options = self.stream_options
        if not self.streams or options is None:
            return Usage()
        return Usage(last=bool(options.include_usage), every=bool(options.continuous_usage_stats))


class Usage(msgspec.Struct, frozen=True):
    """Where a stream tells its usage: in a chunk of its own at the end, in every chunk."""

    last: bool = False
    every: bool = False


PRIORITY_BOUND = 2**31
SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "bad_words",
    "seed",
    "n",
    "best_of",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "include_stop_str_in_output",
    "ignore_eos",
    "skip_special_tokens",
    "prompt_logprobs",
    "reuse_context",
    "cache_generated_tokens",
    "max_tokens",
    *SURFACES,
)


def sampling(request: Request, **more: Any) -> SamplingParams:
    """The sampling wishes of a request; raises `InvalidRequest` that names what is out of range."""
    chosen = {name: getattr(request, name) for name in SAMPLING}
    return SamplingParams(**{**chosen, **more})


def check_shared(request: Request) -> None:
    if request.stream_options is not None and not request.streams:
        raise InvalidRequest(
            "'stream_options' needs 'stream': true; leave it out", param="stream_options"
        )
    if request.streams and request.best_of is not None and request.best_of > (request.n or 1):
        raise InvalidRequest(
            "'best_of' chooses among whole answers, so it does not go with 'stream': true",
            param="best_of",
        )
    if request.priority is not None and abs(request.priority) >= PRIORITY_BOUND:
        raise InvalidRequest("'priority' must fit into 32 bits", param="priority")
    if request.cache_salt is not None and len(request.cache_salt) > 256:
        raise InvalidRequest("'cache_salt' must have at most 256 characters", param="cache_salt")

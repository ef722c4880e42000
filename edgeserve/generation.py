"""What crosses between a front and an engine, as plain data: requests in, events out.

A leaf: HTTP, pipeline, front, worker and engine all speak these types and import nothing else of
each other for it. Everything is msgspec, so the wire form and the in-process form are the same.
Token ids are ints; text is valid UTF-8 (the native stream holds back incomplete characters and
live prefixes of stop strings).
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from edgeserve.errors import ErrorInfo
from edgeserve.guide import Guide
from edgeserve.sampling import SamplerSettings


class Finish(IntEnum):
    """Why a choice ended. Cancelled and failed requests end by `Failed`, never by a piece."""

    STOP = 1  # an end-of-sequence token or a stop string
    LENGTH = 2  # max_tokens, or the end of the context


class ReasoningRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a choice's tokens divide into reasoning and content. The native core follows it.

    A marker is one token id or a few in a row. A token belongs to the phase it was generated in: a
    start marker to content, an end marker to reasoning. The budget counts tokens of all reasoning;
    when it is used up, `closing` follows without being chosen, as reasoning, and then content. Such
    tokens count for everything as if they were chosen.

    Within reasoning: stop strings do not end the choice; end-of-sequence ids, `stop_token_ids` and
    `max_tokens` do, and `min_tokens` counts. A guide rests, unless `constrained`, and until it is
    in force no end is chosen; from then on start markers mean nothing.
    """

    starts_inside: bool = False  # the prompt ends inside reasoning
    end_markers: tuple[tuple[int, ...], ...] = ()
    start_markers: tuple[tuple[int, ...], ...] = ()
    budget: int | None = None  # tokens; 0: `closing` comes first
    closing: tuple[int, ...] = ()  # not empty when there is a budget; has the end marker in it
    constrained: bool = False  # the guide's grammar describes the reasoning too


class GenerationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt to continue, with everything the engine needs to know."""

    id: int  # unique for the lifetime of the connection
    prompt: tuple[int, ...]  # token ids, used as they are
    sampler: SamplerSettings
    max_tokens: int  # already clipped to what fits
    choices: int = 1  # n: choice i draws with a seed derived from (sampler.seed, i)
    stop: tuple[str, ...] = ()  # stop strings; the earliest match ends the choice, text before it
    include_stop: bool = False  # the matched stop string stays in the text
    stop_token_ids: tuple[int, ...] = ()  # beside the model's end-of-sequence ids
    ignore_eos: bool = False
    skip_special_tokens: bool = True  # special tokens give no text (they still give marks)
    reasoning: ReasoningRules | None = None  # None: everything is content
    logprobs: int | None = None  # alternatives per generated token (0: the chosen one alone)
    prompt_logprobs: int | None = None  # the same for prompt tokens from the second on
    guide: Guide | None = None  # a grammar that the text of each choice follows
    reuse_context: bool = True  # look up and publish prefixes
    cache_generated_tokens: bool = True  # publish pages of generated tokens too
    cache_salt: str = ""  # prefixes are shared among equal salts only
    priority: int = 0  # lower is more urgent
    queue_timeout_s: float | None = None
    timeout_s: float | None = None


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """Natural logarithms of raw probabilities (temperature 1, before any sampler step)."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()  # (token id, logprob), best first, ties by id


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """What one choice gained: tokens, and the text that became certain with them."""

    choice: int
    text: str  # may be empty while a character or a stop string is undecided
    tokens: tuple[int, ...] = ()  # tokens sampled since the last piece, special ones included
    logprobs: tuple[TokenLogprob, ...] = ()  # one per token when asked for
    marks: tuple[tuple[int, int], ...] = ()  # (offset into text in UTF-8 bytes, special token id)
    finish: Finish | None = None
    stop: str | int | None = None  # the stop string or stop token id that ended the choice
    phase: int = 0  # of all of it: 0 content, 1 reasoning


# Events: what an engine says of a request. Admitted comes first; Finished or Failed comes last. ---


class Admitted(msgspec.Struct, frozen=True, array_like=True, tag="admitted"):
    """The request has a seat. An HTTP status 200 waits for this."""

    id: int
    cached_tokens: int  # prompt tokens whose keys and values were reused


class Pieces(msgspec.Struct, frozen=True, array_like=True, tag="pieces"):
    id: int
    pieces: tuple[Piece, ...]


class PromptLogprobs(msgspec.Struct, frozen=True, array_like=True, tag="prompt_logprobs"):
    """For prompt tokens 1..n-1 in order; comes before the first piece."""

    id: int
    logprobs: tuple[TokenLogprob, ...]


class Usage(msgspec.Struct, frozen=True, array_like=True):
    """True counts from the engine, and wall-clock times in seconds since the request arrived."""

    prompt_tokens: int
    completion_tokens: int  # over all choices
    cached_tokens: int
    queue_s: float = 0.0  # until a seat was given
    first_token_s: float = 0.0  # until the first token was sampled
    total_s: float = 0.0
    decoded_tokens: int = 0  # completion tokens after each choice's first
    preemptions: int = 0
    reasoning_tokens: int = 0  # of the completion tokens


class Finished(msgspec.Struct, frozen=True, array_like=True, tag="finished"):
    id: int
    usage: Usage


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The request ended without completing: refused, timed out, cancelled or broken."""

    id: int
    error: ErrorInfo


Event = Admitted | Pieces | PromptLogprobs | Finished | Failed

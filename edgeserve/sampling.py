"""How the next token is chosen: what a caller asks for, and the effective settings that run.

`SamplingParams` is public: every field unset (None) unless the caller sets it, checked when it is
made. `resolve` merges request > server flag > family > generation_config.json > OpenAI's defaults
into `SamplerSettings`, which is complete, crosses the wire and is executed by the native sampler.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from edgeserve.errors import InvalidRequest

MAX_LOGPROBS = 50  # alternatives per token
MAX_CHOICES = 128
MAX_BIASES = 1024
MAX_TEXTS, MAX_TEXT_CHARS = 1024, 32 * 1024  # stop strings, and bad words: in all
MAX_IDS = 1024  # stop_token_ids
SEED_MASK = 2**64 - 1
INT31 = 2**31 - 1
ID = re.compile("0|[1-9][0-9]{0,9}", re.ASCII)  # a token id as a JSON key


class SamplerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Complete, validated settings of one request. The sampler's steps run in this order:

    logit_bias, bad_words, min_tokens, mask, repetition, frequency and presence penalties,
    temperature, top_k, typical_p, top_p, min_p, draw. `temperature` 0 is greedy: the highest
    logit after bias and penalties, ties to the lowest id. Logprobs come from raw logits.
    """

    temperature: float = 1.0
    top_k: int = 0  # 0 is off
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    bad_words: tuple[tuple[int, ...], ...] = ()  # token id sequences
    min_tokens: int = 0
    seed: int = 0  # unsigned 64 bit; effective, never unset


class SamplerDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults from one source (server flags, family, generation_config.json); None: no opinion."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None

    @staticmethod
    def from_generation_config(config: Mapping[str, Any]) -> SamplerDefaults:
        """What a generation_config.json says; a value out of range is no opinion.

        An explicit `do_sample: false` asks for greedy decoding, so its filters mean nothing. Left
        out, `do_sample` says nothing: `transformers` does not write values equal to its defaults.
        """
        found = {name: config[name] for name in DEFAULTED if _fits(name, config.get(name))}
        if config.get("do_sample") is False:
            found = {name: found[name] for name in found if name == "repetition_penalty"}
            found["temperature"] = 0.0
        return SamplerDefaults(**found)


class Range(NamedTuple):
    """The values a number may take. `above` excludes `low` itself."""

    kind: type[int] | type[float]
    low: float
    high: float
    above: bool = False

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if self.kind is int and not isinstance(value, int):
            return False
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        noun = "an integer" if self.kind is int else "a number"
        if self.high in (math.inf, INT31):
            return f"{noun} {'above' if self.above else 'of at least'} {self.low:g}"
        if self.above:
            return f"{noun} above {self.low:g} and at most {self.high:g}"
        low, high = (int(self.low), int(self.high)) if self.kind is int else (self.low, self.high)
        return f"{noun} from {low} to {high}"


RANGES: Mapping[str, Range] = {
    "temperature": Range(float, 0, 2),
    "top_k": Range(int, -1, INT31),
    "top_p": Range(float, 0, 1, above=True),
    "min_p": Range(float, 0, 1),
    "typical_p": Range(float, 0, 1, above=True),
    "repetition_penalty": Range(float, 0, 100, above=True),
    "frequency_penalty": Range(float, -2, 2),
    "presence_penalty": Range(float, -2, 2),
    "min_tokens": Range(int, 0, INT31),
    "max_tokens": Range(int, 1, math.inf),
    "max_completion_tokens": Range(int, 1, math.inf),
    "thinking_budget": Range(int, 0, INT31),
    "seed": Range(int, -(2**63), SEED_MASK),
    "n": Range(int, 1, MAX_CHOICES),
    "best_of": Range(int, 1, MAX_CHOICES),
    "top_logprobs": Range(int, 0, MAX_LOGPROBS),
    "num_logprobs": Range(int, 0, MAX_LOGPROBS),
    "prompt_logprobs": Range(int, 0, MAX_LOGPROBS),
}
LOGPROBS = RANGES["top_logprobs"]
DEFAULTED = SamplerDefaults.__struct_fields__


def _fits(name: str, value: object) -> bool:
    return value in RANGES[name]


def bad(param: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"'{param}' must be {rule}", param=param)


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one request asks of sampling and length; whatever is not given is decided by the
    server, the model's family, its generation_config.json and OpenAI's defaults, in this order.

    Raises `InvalidRequest`, whose `param` names the field, when a value is out of its range.
    """

    temperature: float | None = None  # 0..2; 0 is greedy
    top_k: int | None = None  # 0 and -1 are off
    top_p: float | None = None  # above 0, to 1
    min_p: float | None = None  # 0..1
    typical_p: float | None = None  # above 0, to 1
    repetition_penalty: float | None = None  # above 0; 1 is off
    frequency_penalty: float | None = None  # -2..2
    presence_penalty: float | None = None  # -2..2
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None  # token id: -100..100
    bad_words: Sequence[str] | None = None
    seed: int | None = None  # 64 bit; unset: a fresh one, told in the answer
    n: int | None = None  # choices per prompt, 1..128
    best_of: int | None = None  # draw so many and keep the n likeliest; not for streams

    max_tokens: int | None = None  # unset: to the end of the context
    max_completion_tokens: int | None = None  # OpenAI's newer name of max_tokens
    min_tokens: int | None = None
    stop: str | Sequence[str] | None = None
    stop_token_ids: Sequence[int] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    skip_special_tokens: bool | None = None

    logprobs: int | bool | None = None  # alternatives per token; True takes top_logprobs
    top_logprobs: int | None = None
    num_logprobs: int | None = None  # as logprobs, but 0 is off
    prompt_logprobs: int | None = None

    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    thinking_budget: int | None = None  # tokens of reasoning; then it is closed
    chat_template_kwargs: Mapping[str, Any] | None = None

    # What the text must follow; at most one of them. `guided_decoding` may be a pair of mode and
    # guide, ("regex", "[a-z]+").
    response_format: Mapping[str, Any] | None = None
    guided_decoding: Mapping[str, Any] | Sequence[Any] | None = None
    structured_outputs: Mapping[str, Any] | None = None

    reuse_context: bool | None = None
    cache_generated_tokens: bool | None = None
    disable_spec_decode: bool | None = None  # there is no speculative decoding yet

    def __post_init__(self) -> None:
        for name in RANGES:
            value = getattr(self, name)
            if value is not None and value not in RANGES[name]:
                raise bad(name, str(RANGES[name]))
        for name in FLAGS:
            if not isinstance(getattr(self, name), (bool, type(None))):
                raise bad(name, "true or false")
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                check(name, value)
        self._check_together()

    def _check_together(self) -> None:
        limit, newer = self.max_tokens, self.max_completion_tokens
        if limit is not None and newer is not None and limit != newer:
            raise InvalidRequest(
                f"'max_tokens' is {limit} and 'max_completion_tokens' is {newer}; send one of them",
                param="max_completion_tokens",
            )
        if self.min_tokens and self.token_limit is not None and self.min_tokens > self.token_limit:
            raise bad("min_tokens", f"at most 'max_tokens', which is {self.token_limit}")
        if self.best_of is not None and self.best_of < self.choices:
            raise bad("best_of", f"at least 'n', which is {self.choices}")
        if self.top_logprobs is not None and self.logprobs in (None, False):
            raise bad("top_logprobs", "left out unless 'logprobs' is set")

    @property
    def token_limit(self) -> int | None:
        return self.max_tokens if self.max_tokens is not None else self.max_completion_tokens

    @property
    def choices(self) -> int:
        return 1 if self.n is None else self.n

    @property
    def drawn(self) -> int:
        """Choices per prompt that are made; `choices` of them are kept."""
        return self.choices if self.best_of is None else self.best_of

    @property
    def alternatives(self) -> int | None:
        """How many alternatives per generated token to tell; 0: the chosen token alone; None: no
        logprobs."""
        if self.logprobs is True:
            return self.top_logprobs or 0
        if self.logprobs is not None and self.logprobs is not False:
            return self.logprobs
        return self.num_logprobs or None

    @property
    def wants_logprobs(self) -> bool:
        return self.alternatives is not None or self.prompt_logprobs is not None

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings; the empty one, which some clients send for "none", is left out."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return tuple(dict.fromkeys(text for text in stop if text))

    @property
    def surfaces(self) -> dict[str, Any]:
        """The fields that say what the text must follow, as `text.guide.wish` reads them."""
        given = {name: getattr(self, name) for name in SURFACES}
        pair = given["guided_decoding"]
        if isinstance(pair, (list, tuple)):
            given["guided_decoding"] = {pair[0]: pair[1]}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def biases(self) -> tuple[tuple[int, float], ...]:
        return tuple(sorted((int(key), float(v)) for key, v in (self.logit_bias or {}).items()))


SURFACES = ("response_format", "guided_decoding", "structured_outputs")
FLAGS = (
    "include_stop_str_in_output",
    "ignore_eos",
    "skip_special_tokens",
    "enable_thinking",
    "reuse_context",
    "cache_generated_tokens",
    "disable_spec_decode",
)


def _check_texts(name: str, value: object) -> None:
    texts = (value,) if isinstance(value, str) and name == "stop" else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise bad(name, "a list of strings" if name != "stop" else "a string or a list of strings")
    # The engine builds an automaton of them between two steps of everybody.
    if len(texts) > MAX_TEXTS or sum(map(len, texts)) > MAX_TEXT_CHARS:
        raise bad(name, f"at most {MAX_TEXTS} strings with {MAX_TEXT_CHARS} characters in all")
    if any(0xD800 <= ord(char) < 0xE000 for text in texts for char in text):
        raise bad(name, "valid Unicode; it has a lone surrogate")


def _check_words(name: str, value: object) -> None:
    _check_texts(name, value)
    assert isinstance(value, (list, tuple))
    if not all(value):
        raise bad(name, "a list of strings that are not empty")


def _check_ids(name: str, value: object) -> None:
    ids = RANGES["min_tokens"]
    if not isinstance(value, (list, tuple)) or not all(item in ids for item in value):
        raise bad(name, "a list of token ids")
    if len(value) > MAX_IDS:
        raise bad(name, f"a list of at most {MAX_IDS} token ids")


def _check_biases(name: str, value: object) -> None:
    if not isinstance(value, Mapping) or len(value) > MAX_BIASES:
        raise bad(name, f"an object of token id to bias with at most {MAX_BIASES} entries")
    for key, bias in value.items():
        digits = isinstance(key, str) and ID.fullmatch(key) is not None
        if not (digits or key in RANGES["min_tokens"]) or int(key) > INT31:
            raise bad(name, "an object whose keys are token ids")
        if bias not in Range(float, -100, 100):
            raise bad(name, "an object whose values are numbers from -100 to 100")


def _check_logprobs(name: str, value: object) -> None:
    if not isinstance(value, bool) and value not in LOGPROBS:
        raise bad(name, f"true, false or {LOGPROBS}")


def _check_effort(name: str, value: object) -> None:
    if not isinstance(value, str):  # the empty one asks for nothing
        raise bad(name, "a string")


def _check_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise bad(name, "an object")


def _check_guide(name: str, value: object) -> None:
    if name == "guided_decoding" and isinstance(value, (list, tuple)):
        if len(value) != 2 or not isinstance(value[0], str):
            raise bad(name, "an object, or a pair of mode and guide")
    elif not isinstance(value, dict):
        raise bad(name, "an object")


CHECKS: Mapping[str, Callable[[str, object], None]] = {
    "stop": _check_texts,
    "bad_words": _check_words,
    "stop_token_ids": _check_ids,
    "logit_bias": _check_biases,
    "logprobs": _check_logprobs,
    "reasoning_effort": _check_effort,
    "chat_template_kwargs": _check_mapping,
    **dict.fromkeys(SURFACES, _check_guide),
}


def resolve(
    params: SamplingParams,
    server: SamplerDefaults | None = None,
    family: SamplerDefaults | None = None,
    generation_config: SamplerDefaults | None = None,
    *,
    bad_words: tuple[tuple[int, ...], ...] = (),
) -> SamplerSettings:
    """The effective settings. `bad_words` are the token ids of `params.bad_words`."""
    chosen: dict[str, Any] = {}
    for source in (generation_config, family, server, params):
        for name in DEFAULTED:
            value = getattr(source, name, None)
            if value is not None:
                chosen[name] = RANGES[name].kind(value)
    chosen["top_k"] = max(chosen.get("top_k", 0), 0)
    return SamplerSettings(
        **chosen,
        logit_bias=params.biases,
        bad_words=bad_words,
        min_tokens=params.min_tokens or 0,
        seed=secrets.randbits(64) if params.seed is None else params.seed & SEED_MASK,
    )

"""How the next token is chosen: what a caller asks for, and the effective settings that run.

`SamplingParams` is public: every field unset (None) unless the caller sets it. `resolve` merges
request > server flag > family > generation_config.json > OpenAI's defaults into `SamplerSettings`,
which is complete, crosses the wire and is executed by the native sampler.
"""

from __future__ import annotations

import msgspec


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

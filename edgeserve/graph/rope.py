"""Rotary frequencies for every scaling kind that Llama-like checkpoints declare.

The numbers are those of transformers, computed in float32 as it does. Kinds that depend on the
length of a text (dynamic, longrope) take the length from `max_model_len` once, at load, so that
keys in the cache stay valid.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from edgeserve.errors import GraphError
from edgeserve.graph.ops import Rope

DEFAULT_THETA = 10_000.0
DEFAULT_CONTEXT = 2048
_LARGEST = 2**31 - 1  # positions; a config is somebody else's file


@dataclass(frozen=True, slots=True)
class RopeParameters:
    """What config.json says of one rotary embedding, old spellings and new ones alike."""

    kind: str
    theta: float
    dim: int  # columns of a head that turn
    context: int  # max_position_embeddings
    original: int  # the context of pretraining
    values: Mapping[str, Any]

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], head_dim: int, layer_type: str | None = None
    ) -> RopeParameters:
        """`layer_type` picks the entry when a config has parameters per kind of layer."""
        values = config.get("rope_parameters") or config.get("rope_scaling") or {}
        if not isinstance(values, Mapping):
            raise GraphError("'rope_scaling' in config.json must be an object or null")
        if layer_type is not None and isinstance(values.get(layer_type), Mapping):
            values = values[layer_type]
        context = _positive("max_position_embeddings", DEFAULT_CONTEXT, config)
        original = "original_max_position_embeddings"
        return cls(
            kind=str(values.get("rope_type") or values.get("type") or "default"),
            theta=_positive("rope_theta", DEFAULT_THETA, values, config),
            dim=int(head_dim * min(_positive("partial_rotary_factor", 1.0, values, config), 1.0)),
            context=_positions(context),
            original=_positions(_positive(original, context, config, values)),
            values=values,
        )

    def number(self, name: str, default: float | None = None) -> float:
        value = self.values.get(name)
        value = default if value is None else value
        if not _is_positive(value):
            raise GraphError(
                f"rope scaling '{self.kind}' needs a number '{name}' above 0 in config.json"
            )
        return float(value)

    def numbers(self, name: str) -> np.ndarray:
        value = self.values.get(name)
        items = value if isinstance(value, list | tuple) else ()
        if len(items) != self.dim // 2 or not all(map(_is_positive, items)):
            raise GraphError(
                f"rope scaling '{self.kind}' needs a list '{name}' of {self.dim // 2} numbers "
                "above 0"
            )
        return np.asarray(items, np.float32)

    def scaled_context(self) -> int:
        """Positions the scaled model was made for."""
        if self.kind in ("linear", "dynamic"):
            return _positions(self.context * self.number("factor"))
        if self.kind == "yarn" and self.values.get("factor") is not None:
            return max(self.context, _positions(self.original * self.number("factor")))
        return self.context


def rope(
    config: Mapping[str, Any],
    head_dim: int,
    max_model_len: int,
    *,
    layer_type: str | None = None,
) -> Rope:
    """The rotary embedding that a config describes."""
    parameters = RopeParameters.from_config(config, head_dim, layer_type)
    kind = KINDS.get(parameters.kind)
    if kind is None:
        raise GraphError(
            f"rope scaling '{parameters.kind}' is not known; known: {', '.join(sorted(KINDS))}"
        )
    if parameters.dim % 2:
        raise GraphError(
            f"rotary embedding turns pairs of columns, and {parameters.dim} columns of a head are "
            "odd; check hidden_size, num_attention_heads and head_dim in config.json"
        )
    try:
        with np.errstate(all="ignore"):  # what comes of it is checked below
            frequencies, attention_factor = kind(parameters, max_model_len)
    except (ArithmeticError, ValueError):
        frequencies, attention_factor = np.full(1, np.nan), 1.0
    if not np.isfinite([*frequencies, attention_factor]).all():
        raise GraphError(
            f"rope scaling '{parameters.kind}' cannot be computed from the numbers in config.json; "
            "check rope_theta and what stands beside the kind"
        )
    return Rope(
        head_dim=head_dim,
        rotary_dim=parameters.dim,
        frequencies=tuple(float(value) for value in frequencies),
        attention_factor=attention_factor,
    )


def _positive(name: str, default: float, *places: Mapping[str, Any]) -> float:
    """The first value found that is not null."""
    for place in places:
        value = place.get(name)
        if value is None:
            continue
        if not _is_positive(value):
            raise GraphError(f"'{name}' in config.json must be a number above 0")
        return float(value)
    return default


def _is_positive(value: Any) -> TypeGuard[float]:
    """Whether it is a number above 0 that a float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= sys.float_info.max


def _positions(value: float) -> int:
    if value > _LARGEST:
        raise GraphError(
            f"config.json makes the context {value:.4g} positions, over the limit of {_LARGEST}"
        )
    return int(value)


Frequencies = tuple[np.ndarray, float]  # radians per position, factor of cos and sin


def _powers(theta: float, dim: int) -> np.ndarray:
    """theta ** (2i / dim), rounded to float32."""
    exponents = np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)
    powers: np.ndarray = np.power(theta, exponents.astype(np.float64)).astype(np.float32)
    return powers


def _inverse(theta: float, dim: int) -> np.ndarray:
    frequencies: np.ndarray = np.float32(1.0) / _powers(theta, dim)
    return frequencies


def _default(p: RopeParameters, _max_model_len: int) -> Frequencies:
    return _inverse(p.theta, p.dim), 1.0


def _linear(p: RopeParameters, _max_model_len: int) -> Frequencies:
    return _inverse(p.theta, p.dim) / np.float32(p.number("factor")), 1.0


def _dynamic(p: RopeParameters, max_model_len: int) -> Frequencies:
    factor, length = p.number("factor"), max(max_model_len, p.context)
    stretch = factor * length / p.context - (factor - 1)
    return _inverse(p.theta * stretch ** (p.dim / (p.dim - 2)), p.dim), 1.0


def _yarn(p: RopeParameters, _max_model_len: int) -> Frequencies:
    known = p.values.get("factor") is not None
    factor = p.number("factor") if known else p.context / p.original
    powers = _powers(p.theta, p.dim)
    kept = np.float32(1.0) / powers
    stretched = np.float32(1.0) / (np.float32(factor) * powers)
    low, high = _yarn_range(p)
    ramp = (np.arange(p.dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low)
    share = np.float32(1.0) - np.clip(ramp, 0, 1)  # of the unscaled frequency
    frequencies = stretched * (np.float32(1.0) - share) + kept * share
    return frequencies.astype(np.float32), _yarn_attention_factor(p, factor)


def _yarn_range(p: RopeParameters) -> tuple[float, float]:
    """The columns between which frequencies go over from unscaled to scaled."""

    def column(turns: float) -> float:
        return (p.dim * math.log(p.original / (turns * 2 * math.pi))) / (2 * math.log(p.theta))

    low = column(p.number("beta_fast", 32))
    high = column(p.number("beta_slow", 1))
    if p.values.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, p.dim - 1)
    return (low, high + 0.001) if low == high else (low, high)


def _yarn_attention_factor(p: RopeParameters, factor: float) -> float:
    def magnitude(weight: float = 1.0) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if p.values.get("attention_factor") is not None:
        return p.number("attention_factor")
    if p.values.get("mscale") and p.values.get("mscale_all_dim"):
        return magnitude(p.number("mscale")) / magnitude(p.number("mscale_all_dim"))
    return magnitude()


def _longrope(p: RopeParameters, max_model_len: int) -> Frequencies:
    known = p.values.get("factor") is not None
    factor = p.number("factor") if known else p.context / p.original
    stretch = p.numbers("long_factor" if max_model_len > p.original else "short_factor")
    frequencies = np.float32(1.0) / (stretch * _powers(p.theta, p.dim))
    if p.values.get("attention_factor") is not None:
        return frequencies, p.number("attention_factor")
    if factor <= 1:
        return frequencies, 1.0
    return frequencies, math.sqrt(1 + math.log(factor) / math.log(p.original))


def _llama3(p: RopeParameters, _max_model_len: int) -> Frequencies:
    frequencies = _inverse(p.theta, p.dim)
    factor = np.float32(p.number("factor"))
    low, high = p.number("low_freq_factor"), p.number("high_freq_factor")
    wavelength = np.float32(2 * math.pi) / frequencies
    smooth = (np.float32(p.original) / wavelength - np.float32(low)) / np.float32(high - low)
    middle = (np.float32(1.0) - smooth) * frequencies / factor + smooth * frequencies
    scaled = np.where(wavelength > p.original / low, frequencies / factor, frequencies)
    between = (wavelength >= p.original / high) & (wavelength <= p.original / low)
    return np.where(between, middle, scaled).astype(np.float32), 1.0


def _factors(p: RopeParameters, _max_model_len: int) -> Frequencies:
    """A GGUF may carry the divisors themselves (`rope_freqs`) in place of a rule."""
    return _inverse(p.theta, p.dim) / p.numbers("factors"), 1.0


KINDS: dict[str, Callable[[RopeParameters, int], Frequencies]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,  # its first name
    "llama3": _llama3,
    "factors": _factors,
}

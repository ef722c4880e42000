"""Attention over pages: against a plain softmax, and bitwise under every way to cut a prompt."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edgeserve._native import kernels

ISAS = kernels.isas()


def bf16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def plain(q, keys, values, first, *, scale, soft_cap=0.0, window=0, sinks=None):
    """softmax(q.k) v in float64, one row and head at a time."""
    out = np.empty(q.shape, np.float64)
    for r, h in np.ndindex(q.shape[:2]):
        position = first + r
        low = max(0, position - window + 1) if window else 0
        scores = keys[low : position + 1].astype(np.float64) @ q[r, h].astype(np.float64) * scale
        if soft_cap:
            scores = soft_cap * np.tanh(scores / soft_cap)
        most = max(scores.max(), sinks[h] if sinks is not None else -np.inf)
        weights = np.exp(scores - most)
        total = weights.sum() + (np.exp(sinks[h] - most) if sinks is not None else 0.0)
        out[r, h] = weights @ values[low : position + 1].astype(np.float64) / total
    return out


class Case:
    """Random queries, keys and values of one head, with pages in random order."""

    def __init__(self, *, positions=None, heads=None, dim=None):
        rng = np.random.default_rng()
        self.positions = positions or int(rng.integers(1, 130))
        self.heads = heads or int(rng.integers(1, 10))
        self.dim = dim or 2 * int(rng.integers(1, 65))
        self.q = rng.normal(size=(self.positions, self.heads, self.dim)).astype(np.float32)
        self.keys = rng.normal(size=(self.positions, self.dim)).astype(np.float32)
        self.values = rng.normal(size=(self.positions, self.dim)).astype(np.float32)
        self.page_tokens = int(rng.choice([16, 32, 64]))
        self.pages = rng.permutation(80).astype(np.int32)
        self.scale = self.dim**-0.5

    def attend(self, isa, start=0, stop=None, **options):
        stop = self.positions if stop is None else stop
        return kernels.attend(
            np.ascontiguousarray(self.q[start:stop]),
            np.ascontiguousarray(self.keys[:stop]),
            np.ascontiguousarray(self.values[:stop]),
            self.pages,
            first=start,
            scale=self.scale,
            page_tokens=self.page_tokens,
            isa=isa,
            **options,
        )


OPTIONS = [{}, {"window": 1}, {"window": 21}, {"soft_cap": 0.8}, {"sinks": True}]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv_f32", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_attention_is_a_softmax_over_the_pages(isa, kv_f32, options):
    case, options = Case(), dict(options)
    if options.get("sinks"):
        options["sinks"] = np.linspace(-1, 2, case.heads).astype(np.float32)
    keys, values = case.keys, case.values
    if not kv_f32:
        keys, values = bf16(keys), bf16(values)
    got = case.attend(isa, kv_f32=kv_f32, **options)
    expected = plain(case.q, keys, values, 0, scale=case.scale, **options)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got, case.attend("scalar", kv_f32=kv_f32, **options))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("options", [{}, {"window": 21}, {"kv_f32": True}], ids=str)
def test_attention_is_bitwise_the_same_in_any_chunking(isa, options):
    case = Case(positions=75)
    whole = case.attend(isa, **options)
    rng = np.random.default_rng()
    for cuts in ([*range(1, 75)], [16, 32, 48, 64], sorted(rng.choice(74, 5, replace=False) + 1)):
        edges = [0, *map(int, cuts), 75]
        pieces = [case.attend(isa, start, stop, **options) for start, stop in pairwise(edges)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("options", [{}, {"window": 300}, {"sinks": True}], ids=str)
def test_long_rows_are_a_softmax_and_bitwise_the_same_in_any_chunking(isa, options):
    case, options = Case(positions=1060, heads=2, dim=12), dict(options)
    if options.get("sinks"):
        options["sinks"] = np.linspace(-1, 2, case.heads).astype(np.float32)
    whole = case.attend(isa, **options)
    expected = plain(
        case.q[1000:], bf16(case.keys), bf16(case.values), 1000, scale=case.scale, **options
    )
    np.testing.assert_allclose(whole[1000:], expected, rtol=1e-4, atol=1e-5)
    edges = [0, 500, 511, 512, 513, 520, 1023, 1024, 1025, 1060]
    pieces = [case.attend(isa, start, stop, **options) for start, stop in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)

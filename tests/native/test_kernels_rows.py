"""Row kernels of every instruction set: against NumPy, and bitwise against the scalar ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgeserve._native import kernels

ISAS = kernels.isas()
SILU, GELU, GELU_TANH, RELU, RELU2, SCALE, SOFT_CAP = range(7)

UNARY = {
    SILU: lambda x: x / (1 + np.exp(-x)),
    GELU: lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    GELU_TANH: lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    RELU: lambda x: np.maximum(x, 0),
    RELU2: lambda x: np.maximum(x, 0) ** 2,
    SCALE: lambda x: x * 0.37,
    SOFT_CAP: lambda x: 0.37 * np.tanh(x / 0.37),
}


def row(width: int, spread: float = 3.0) -> np.ndarray:
    return (np.random.default_rng().normal(size=width) * spread).astype(np.float32)


def widths() -> list[int]:
    return [1, 15, 16, 17, 31, 32, 33, 64, int(np.random.default_rng().integers(65, 2000))]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", UNARY)
def test_activations(isa, kind):
    for width in widths():
        x = row(width, 8.0)
        got = kernels.unary(kind, x, number=np.float32(0.37), isa=isa)
        np.testing.assert_allclose(got, UNARY[kind](x.astype(np.float64)), rtol=2e-6, atol=4e-6)
        np.testing.assert_array_equal(
            got, kernels.unary(kind, x, number=np.float32(0.37), isa="scalar")
        )


@pytest.mark.parametrize("isa", ISAS)
def test_activations_of_huge_numbers_stay_finite(isa):
    x = np.array([-1e30, -200.0, -88.0, 88.0, 200.0, 1e30], np.float32)
    np.testing.assert_allclose(
        kernels.unary(SILU, x, isa=isa), np.maximum(x, 0), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("isa", ISAS)
def test_gated_activation_and_arithmetic(isa):
    for width in widths():
        a, b = row(width), row(width)
        np.testing.assert_array_equal(kernels.binary(0, a, b, isa=isa), a + b)
        np.testing.assert_array_equal(kernels.binary(1, a, b, isa=isa), a * b)
        for kind in (SILU, GELU_TANH, RELU):
            expected = kernels.unary(kind, a, isa=isa) * b
            np.testing.assert_array_equal(kernels.gated(kind, a, b, isa=isa), expected)


@pytest.mark.parametrize("isa", ISAS)
def test_norms(isa):
    for width in widths():
        x, weight, bias = row(width), row(width), row(width)
        wide = x.astype(np.float64)
        rms = wide / np.sqrt(np.mean(wide**2) + 1e-5) * (weight + 1.0)
        got = kernels.rms_norm(x, weight, eps=1e-5, offset=1.0, isa=isa)
        np.testing.assert_allclose(got, rms, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(
            got, kernels.rms_norm(x, weight, eps=1e-5, offset=1.0, isa="scalar")
        )
        layer = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5) * weight + bias
        got = kernels.layer_norm(x, weight, bias, eps=1e-5, isa=isa)
        np.testing.assert_allclose(got, layer, rtol=2e-5, atol=2e-5)
        np.testing.assert_array_equal(
            got, kernels.layer_norm(x, weight, bias, eps=1e-5, isa="scalar")
        )


@pytest.mark.parametrize("isa", ISAS)
def test_quantising_keeps_each_block_within_half_a_code(isa):
    for width in widths():
        x = row(width)
        codes, scales = kernels.quantise(x, isa=isa)
        step = np.repeat(scales[:, 0], 32)[:width]
        assert np.all(np.abs(codes * step - x) <= step * 0.5001)
        oracle_codes, oracle_scales = kernels.quantise(x, isa="scalar")
        np.testing.assert_array_equal(codes, oracle_codes)
        np.testing.assert_array_equal(scales, oracle_scales)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_turns_pairs_and_leaves_the_rest(isa, interleaved):
    rng = np.random.default_rng()
    for dim, rotary in ((64, 64), (80, 20), (128, 96), (32, 6)):
        x, angles = row(dim), rng.uniform(-3, 3, rotary // 2)
        table = np.concatenate([np.cos(angles), np.sin(angles)]).astype(np.float32)
        pairs = (
            np.arange(rotary).reshape(-1, 2) if interleaved else np.arange(rotary).reshape(2, -1).T
        )
        z = (x[pairs[:, 0]] + 1j * x[pairs[:, 1]]) * np.exp(1j * angles)
        expected = x.astype(np.float64)
        expected[pairs[:, 0]], expected[pairs[:, 1]] = z.real, z.imag
        got = kernels.rope(x, table, interleaved=interleaved, isa=isa)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-6)
        np.testing.assert_array_equal(
            got, kernels.rope(x, table, interleaved=interleaved, isa="scalar")
        )

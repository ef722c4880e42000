"""Packing and linear layers of every instruction set against NumPy in float64."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from edgeserve._native import kernels
from edgeserve.backends.cpu.formats import SOURCES

ISAS = kernels.isas()
QUANTISED = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q6_k"]
ROWS = [1, 2, 3, 4, 5, 7, 8, 9, 17, 33]
SUPER = {"q4_k", "q6_k"}  # formats with blocks of 256


def columns_of(source: str, rng: np.random.Generator) -> int:
    return 256 * int(rng.integers(1, 4)) if source in SUPER else 32 * int(rng.integers(1, 20))


def stored_matrix(source: str, rows: int, columns: int, rng: np.random.Generator):
    """A random matrix as a checkpoint stores it: (stored rows as bytes, float32 values)."""
    values = rng.normal(size=(rows, columns)).astype(np.float32)
    if source == "f32":
        return values.view(np.uint8), values
    if source == "f16":
        half = values.astype(np.float16)
        half[0, :2] = [6e-8, -0.0]  # a subnormal, a negative zero
        return half.view(np.uint8), half.astype(np.float32)
    if source == "bf16":
        wide = values.view(np.uint32) & 0xFFFF0000
        return (wide >> 16).astype(np.uint16).view(np.uint8), wide.view(np.float32)
    kind = gguf.GGMLQuantizationType[source.upper()]
    if source in SUPER:  # gguf cannot quantise these: random bytes with a sane scale
        size = gguf.GGML_QUANT_SIZES[kind][1]
        stored = rng.integers(0, 256, (rows, columns // 256, size), np.uint8)
        scale = np.float16(rng.uniform(1e-3, 1e-2, (rows, columns // 256, 2))).view(np.uint8)
        if source == "q4_k":
            stored[:, :, :4] = scale
        else:
            stored[:, :, -2:] = scale[:, :, :2]
        stored = np.ascontiguousarray(stored.reshape(rows, -1))
    else:
        stored = np.ascontiguousarray(gguf.quants.quantize(values, kind))
    return stored, gguf.quants.dequantize(stored, kind)


def packed_matrix(source: str, rows: int, columns: int, rng: np.random.Generator):
    stored, values = stored_matrix(source, rows, columns, rng)
    format = kernels.exact_format(SOURCES[source])
    data = kernels.pack(SOURCES[source], stored, columns, format, threads=2)
    assert data.nbytes == kernels.packed_bytes(format, rows, columns)
    return kernels.Matrix(data, format, rows, columns), values


def bf16(x: np.ndarray) -> np.ndarray:
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def close(got: np.ndarray, expected: np.ndarray, size: np.ndarray, tolerance: float) -> bool:
    """`size`: the sum of the absolute products of each result, what rounding errors scale with."""
    return bool(np.all(np.abs(got - expected) <= tolerance * size + 1e-30))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("source", [*QUANTISED, "f32", "f16", "bf16"])
def test_a_packed_row_has_exactly_the_values_of_the_checkpoint(isa, source):
    rng = np.random.default_rng()
    rows, columns = int(rng.integers(1, 40)), columns_of(source, rng)
    matrix, values = packed_matrix(source, rows, columns, rng)
    for row in range(rows):
        np.testing.assert_array_equal(matrix.gather(row, isa=isa), values[row])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("source", [*QUANTISED, "f32", "f16", "bf16"])
def test_f32_activations_meet_the_exact_weights(isa, source):
    rng = np.random.default_rng()
    rows, columns = int(rng.integers(1, 90)), columns_of(source, rng)
    matrix, values = packed_matrix(source, rows, columns, rng)
    for count in ROWS:
        x = rng.normal(size=(count, columns)).astype(np.float32)
        expected = x.astype(np.float64) @ values.astype(np.float64).T
        size = np.abs(x).astype(np.float64) @ np.abs(values).astype(np.float64).T
        assert close(matrix.matmul(x, "f32", isa=isa), expected, size, 3e-6)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("source", QUANTISED)
def test_int8_activations_give_the_product_of_what_was_quantised(isa, source):
    rng = np.random.default_rng()
    rows, columns = int(rng.integers(1, 90)), columns_of(source, rng)
    matrix, values = packed_matrix(source, rows, columns, rng)
    bias = rng.normal(size=rows).astype(np.float32)
    for count in ROWS:
        x = rng.normal(size=(count, columns)).astype(np.float32)
        x[0, :32] = 0.0
        rounded = np.empty_like(x, np.float64)
        for row in range(count):
            codes, scales = kernels.quantise(x[row], isa=isa)
            rounded[row] = codes * np.repeat(scales, 32, axis=0)[:, 0][:columns].astype(np.float64)
        expected = rounded @ values.astype(np.float64).T + bias
        size = np.abs(rounded) @ np.abs(values).astype(np.float64).T
        # codes that are not centred make larger intermediate sums than the result shows
        got = matrix.matmul(x, "int8", bias=bias, isa=isa)
        assert close(got, expected, size + np.abs(bias), 2e-5)


@pytest.mark.parametrize("source", QUANTISED)
def test_integer_products_are_bitwise_the_same_on_every_instruction_set(source):
    rng = np.random.default_rng()
    rows, columns = int(rng.integers(1, 60)), columns_of(source, rng)
    matrix, _ = packed_matrix(source, rows, columns, rng)
    x = rng.normal(size=(9, columns)).astype(np.float32)
    oracle = matrix.matmul(x, "int8", isa="scalar")
    for isa in ISAS:
        np.testing.assert_array_equal(matrix.matmul(x, "int8", isa=isa), oracle)


@pytest.mark.parametrize("isa", ISAS)
def test_products_do_not_saturate_at_the_ends_of_the_ranges(isa):
    for code in (-128, 127):
        stored = np.zeros((16, 34), np.uint8)
        stored[:, :2] = np.array([1.0], np.float16).view(np.uint8)
        stored[:, 2:] = np.array([code], np.int8).view(np.uint8)
        format = kernels.exact_format(SOURCES["q8_0"])
        matrix = kernels.Matrix(kernels.pack(SOURCES["q8_0"], stored, 32, format), format, 16, 32)
        for sign in (-1.0, 1.0):
            x = np.full((1, 32), sign * 127.0, np.float32)
            np.testing.assert_array_equal(
                matrix.matmul(x, "int8", isa=isa), np.full((1, 16), 32 * 127.0 * code * sign)
            )


@pytest.mark.parametrize("isa", ISAS)
def test_bf16_activations_meet_bf16_weights(isa):
    rng = np.random.default_rng()
    rows, columns = int(rng.integers(1, 90)), int(rng.integers(1, 700))
    matrix, values = packed_matrix("bf16", rows, columns, rng)
    for count in ROWS:
        x = rng.normal(size=(count, columns)).astype(np.float32)
        expected = bf16(x).astype(np.float64) @ values.astype(np.float64).T
        size = np.abs(x).astype(np.float64) @ np.abs(values).astype(np.float64).T
        assert close(matrix.matmul(x, "bf16", isa=isa), expected, size, 5e-6)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "source, form",
    [
        *((source, "int8") for source in QUANTISED),
        ("bf16", "bf16"),
        ("f32", "f32"),
        ("q4_1", "f32"),
    ],
)
def test_a_row_is_bitwise_the_same_among_any_number_of_rows(isa, source, form):
    rng = np.random.default_rng()
    rows, columns = int(rng.integers(40, 150)), columns_of(source, rng)
    matrix, _ = packed_matrix(source, rows, columns, rng)
    x = rng.normal(size=(33, columns)).astype(np.float32)
    alone = np.concatenate([matrix.matmul(x[row : row + 1], form, isa=isa) for row in range(33)])
    for count in ROWS:
        np.testing.assert_array_equal(matrix.matmul(x[:count], form, isa=isa), alone[:count])


def test_a_format_that_does_not_hold_the_source_is_refused():
    stored = np.zeros((16, 18), np.uint8)
    with pytest.raises(ValueError):
        kernels.pack(SOURCES["q4_0"], stored, 32, kernels.exact_format(SOURCES["q4_1"]))


def test_an_unknown_instruction_set_is_refused_with_the_choices():
    with pytest.raises(RuntimeError, match=r"'sse9'; it can run: .*scalar"):
        kernels.unary(0, np.ones(3, np.float32), isa="sse9")

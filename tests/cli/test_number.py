from __future__ import annotations

import argparse

import pytest

from edgeserve.cli import number


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096", 4096),
        ("1KiB", 1024),
        ("1k", 1024),
        ("500MB", 500_000_000),
        ("1.5GiB", 3 * 512 * 1024**2),
        ("2 tib", 2 * 1024**4),
    ],
)
def test_sizes_are_read_with_binary_and_decimal_units(text: str, size: int) -> None:
    assert number.byte_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "lots", "1XB", "1.2.3", "GiB"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="500MB or 2GiB"):
        number.byte_size(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x"])
def test_a_number_is_finite(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        number.real(text)


def test_priorities_are_zero_or_negative() -> None:
    assert [number.not_positive(text) for text in ("0", "-5")] == [0, -5]
    with pytest.raises(argparse.ArgumentTypeError):
        number.not_positive("5")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (2048, "2 KiB"), (1.5 * 1024**3, "1.5 GiB"), (2**41, "2.0 TiB")],
)
def test_sizes_are_written_for_people(count: float, text: str) -> None:
    assert number.human_bytes(count) == text

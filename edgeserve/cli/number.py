"""Types of numeric flags for argparse: what is wrong is said with the accepted form."""

from __future__ import annotations

import argparse
import math
import re

UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    UNITS[_letter] = UNITS[f"{_letter}ib"] = 1024**_power
    UNITS[f"{_letter}b"] = 1000**_power

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def _integer(text: str, minimum: int, maximum: int | None = None) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if value < minimum or (maximum is not None and value > maximum):
        bound = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise argparse.ArgumentTypeError(f"{value} is out of range; give a number {bound}")
    return value


def positive(text: str) -> int:
    return _integer(text, 1)


def natural(text: str) -> int:
    return _integer(text, 0)


def not_positive(text: str) -> int:
    value = -_integer(text.removeprefix("-"), 0)
    if value and not text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text} is out of range; give 0 or a negative number")
    return value


def port(text: str) -> int:
    return _integer(text, 0, 65535)


def real(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return value


def seconds(text: str) -> float:
    """A time above zero."""
    value = real(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is out of range; give seconds above 0")
    return value


def seconds_or_off(text: str) -> float | None:
    """A time above zero; 0 and `off` mean no limit."""
    return None if text in ("0", "off") else seconds(text)


def byte_size(text: str) -> int:
    """`500MB`, `2GiB`, `1.5g`, or plain bytes."""
    match = _SIZE.fullmatch(text.strip())
    unit = UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or (value := int(float(match[1]) * unit)) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write 500MB or 2GiB")
    return value


def pool_bytes(text: str) -> tuple[str, int]:
    """The page pool as another server's flag writes it: always bytes."""
    return "bytes", byte_size(text)


def gibibytes(text: str) -> int:
    """A number of GiB, as bytes."""
    value = real(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is out of range; give GiB above 0")
    return int(value * 1024**3)


def pool_size(text: str) -> tuple[str, int]:
    """The page pool: `4096` is pages, `2GiB` is bytes."""
    if text.strip().isdigit():
        return "pages", positive(text)
    return "bytes", byte_size(text)


def human_bytes(count: float) -> str:
    """`1.4 GiB`, `37 KiB`, `12 B`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit in ("B", "KiB") else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"

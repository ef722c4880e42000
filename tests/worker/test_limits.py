"""Limits hold together, whatever the options; refusals state the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeserve.config import EngineOptions
from edgeserve.errors import BadConfig
from edgeserve.model_info import Limits
from edgeserve.worker.limits import Room, make_limits
from edgeserve.worker.memory import available_bytes

MIB = 1024**2


PLENTY = Room(8192, MIB, None)


def limits(room: Room = PLENTY, **options: int) -> Limits:
    return make_limits(EngineOptions(checkpoint="x", **options), room)


def test_the_default_pool_serves_every_seat() -> None:
    found = limits()
    assert (found.max_model_len, found.max_input_len, found.seats) == (8192, 8191, 8)
    assert found.pages == 8 * 4096 // 16
    assert limits(Room(1024, MIB, None)).pages == 8 * 1024 // 16


def test_the_pool_takes_a_share_of_the_memory_and_shortens_the_context_to_what_fits() -> None:
    assert limits(Room(8192, MIB, 2048 * MIB)).pages == 1024
    small = limits(Room(8192, MIB, 200 * MIB))
    assert (small.pages, small.max_model_len, small.max_input_len) == (100, 1600, 1599)


def test_an_explicit_length_that_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(BadConfig, match=r"4096 tokens needs 256 pages \(256 MiB\).*for 100"):
        limits(Room(8192, MIB, 200 * MIB), max_model_len=4096)
    with pytest.raises(BadConfig, match="context of 8192 tokens, less than the 9000"):
        limits(max_model_len=9000)


def test_explicit_pools() -> None:
    assert limits(kv_pool_pages=600).pages == 600
    assert limits(kv_pool_bytes=600 * MIB).pages == 600
    assert limits(kv_pool_pages=600, max_kv_cache_capacity=512).max_model_len == 512


@given(
    context=st.integers(2, 200_000),
    free=st.none() | st.integers(0, 10**11),
    seats=st.integers(1, 512),
    step=st.integers(1, 4096),
    chunk=st.integers(1, 4096),
    longest=st.none() | st.integers(1, 200_000),
)
def test_limits_hold_together_or_are_refused(
    context: int, free: int | None, seats: int, step: int, chunk: int, longest: int | None
) -> None:
    options = {
        "max_batch_size": seats,
        "step_tokens": step,
        "prefill_chunk": chunk,
        "max_model_len": longest,
    }
    try:
        found = limits(Room(context, 100_000, free), **options)
    except BadConfig:
        return
    assert found.pages * found.page_tokens >= found.max_model_len
    assert 1 <= found.max_input_len < found.max_model_len <= context
    assert found.step_tokens >= found.seats
    assert found.prefill_chunk <= found.step_tokens


def test_available_memory_is_the_smaller_of_machine_and_container(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 100 kB\nMemAvailable:   64 kB\n")
    assert available_bytes(meminfo, tmp_path / "none") == 64 * 1024
    (tmp_path / "memory.max").write_text("50000\n")
    (tmp_path / "memory.current").write_text("30000\n")
    (tmp_path / "memory.stat").write_text("anon 20000\nfile 10000\n")
    assert available_bytes(meminfo, tmp_path) == 30_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes(meminfo, tmp_path) == 64 * 1024
    assert available_bytes(tmp_path / "none", tmp_path / "none") is None

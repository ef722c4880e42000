"""The numbers of an engine, from options, model and memory. Pure; errors state the numbers."""

from __future__ import annotations

from typing import NamedTuple

from edgeserve.config import PAGE_TOKENS, EngineOptions
from edgeserve.errors import BadConfig
from edgeserve.model_info import Limits

SEAT_TOKENS = 4096  # of the default pool, for each seat
SHARE = 0.5  # of the memory that weights leave, for the default pool
MIB = 1024**2


class Room(NamedTuple):
    """What there is to divide."""

    context: int  # positions the model was made for
    page_bytes: int
    free_bytes: int | None  # beside the weights; None: unknown


def longest_sequence(options: EngineOptions, context: int) -> int:
    """Tokens of the longest sequence that the options and the model allow."""
    asked = options.max_model_len or options.max_kv_cache_capacity
    if asked is not None and asked > context:
        raise BadConfig(
            f"the model has a context of {context} tokens, less than the {asked} asked for; lower "
            "--max-model-len or --max-kv-cache-capacity"
        )
    wishes = [options.max_model_len, options.max_kv_cache_capacity, context]
    longest = min(wish for wish in wishes if wish is not None)
    if longest < 2:
        raise BadConfig(
            f"a sequence of {longest} tokens has no room for an answer; allow at least 2"
        )
    return longest


def make_limits(options: EngineOptions, room: Room) -> Limits:
    """Limits that hold together: the pool always has room for one longest sequence."""
    longest = longest_sequence(options, room.context)
    pages = _pool_pages(options, room, longest)
    if pages * PAGE_TOKENS < longest:
        longest = _shortened(options, room, pages, longest)
    longest_input = min(options.max_input_len or longest, longest - 1)
    step_tokens = max(options.step_tokens, options.max_batch_size)
    return Limits(
        max_model_len=longest,
        max_input_len=longest_input,
        seats=options.max_batch_size,
        pages=pages,
        page_tokens=PAGE_TOKENS,
        step_tokens=step_tokens,
        prefill_chunk=min(options.prefill_chunk, step_tokens),
    )


def _pool_pages(options: EngineOptions, room: Room, longest: int) -> int:
    if options.kv_pool_pages is not None:
        return options.kv_pool_pages
    if options.kv_pool_bytes is not None:
        return options.kv_pool_bytes // max(1, room.page_bytes)
    tokens = max(longest, options.max_batch_size * min(longest, SEAT_TOKENS))
    pages = -(-tokens // PAGE_TOKENS)
    if room.free_bytes is None:
        return pages
    return min(pages, int(room.free_bytes * SHARE) // max(1, room.page_bytes))


def _shortened(options: EngineOptions, room: Room, pages: int, longest: int) -> int:
    """The longest sequence for a pool that is too small for the model's context."""
    fits = pages * PAGE_TOKENS
    asked = options.max_model_len is not None or options.max_kv_cache_capacity is not None
    if asked or fits < 2 * PAGE_TOKENS:
        needed = -(-longest // PAGE_TOKENS)
        size, free = needed * room.page_bytes / MIB, pages * room.page_bytes / MIB
        raise BadConfig(
            f"a sequence of {longest} tokens needs {needed} pages ({size:.0f} MiB) of keys and "
            f"values, the pool has room for {pages} ({free:.0f} MiB); lower "
            "--max-kv-cache-capacity or raise --kv-pool-size"
        )
    return fits

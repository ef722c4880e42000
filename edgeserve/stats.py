"""Counters of one engine, as data: read by health, metrics and the Python API.

A leaf. `SchedulingStats` has the names that `/health` shows under `scheduling`; `CacheStats` the
ones of the context cache. Counts run from the start of the engine; gauges are of this moment.
"""

from __future__ import annotations

import msgspec


class SchedulingStats(msgspec.Struct, kw_only=True):
    """Requests through the scheduler."""

    submitted: int = 0
    completed: int = 0
    cancelled: int = 0
    failed: int = 0
    refused: int = 0  # left the queue at its time limit
    admitted_mid_flight: int = 0  # got a seat while other rows were running
    stalls_incompatible: int = 0  # always 0: rows of any settings share a step
    stalls_guided: int = 0  # always 0, as above
    stalls_no_capacity: int = 0  # times the head of the queue found no seat or no pages
    queue_latency_avg_us: int = 0
    queue_latency_max_us: int = 0
    queued: int = 0  # gauge: requests that wait for a first seat
    resident: int = 0  # gauge: rows with a seat
    preemptions: int = 0
    steps: int = 0
    prompt_tokens: int = 0  # of admitted requests
    computed_tokens: int = 0  # through the network, recomputed ones included
    generated_tokens: int = 0


class CacheStats(msgspec.Struct, kw_only=True):
    """The prefix index and the page pool."""

    admitted_sequences: int = 0
    hit_sequences: int = 0
    lookup_bypass_sequences: int = 0  # prompt logprobs asked for
    forced_cold_sequences: int = 0  # reuse_context=false, or reuse switched off
    standard_plans: int = 0  # some of the prompt was reused
    no_reusable_prefix_plans: int = 0
    full_input_rewind_plans: int = 0  # all of the prompt was there; its end is computed again
    matched_tokens: int = 0
    reused_tokens: int = 0
    publication_attempts: int = 0
    published_endpoints: int = 0  # of these, those that added something
    existing_published_endpoints: int = 0  # and those that were there already
    published_pages: int = 0
    evicted_pages: int = 0
    evicted_records: int = 0
    planning_nanoseconds: int = 0
    current_records: int = 0  # gauge: endpoints in the index
    cached_pages: int = 0  # gauge: pages that the index holds
    reclaimable_pages: int = 0  # gauge: of these, the ones that nobody else holds
    free_pages: int = 0  # gauge
    total_pages: int = 0


class EngineStats(msgspec.Struct, kw_only=True):
    """One engine at one moment."""

    scheduling: SchedulingStats = msgspec.field(default_factory=SchedulingStats)
    cache: CacheStats = msgspec.field(default_factory=CacheStats)

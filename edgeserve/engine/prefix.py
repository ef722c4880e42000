"""Policy over the native prefix index: who looks up, who publishes, and when pages are evicted.

Engine thread only. A prompt is published when it is computed, a whole choice when it has ended
well. Requests with `reuse_context=false` do neither; prompt logprobs need every position computed
and so bypass the lookup.
"""

from __future__ import annotations

from edgeserve._native.pages import PagePool
from edgeserve._native.prefix import PrefixTree
from edgeserve._native.sequence import Sequence
from edgeserve.generation import GenerationRequest
from edgeserve.stats import CacheStats

# Evict this many pages more for each row, so that native decoding runs on for a while.
SPARE_PAGES = 4


class PrefixCache:
    def __init__(
        self, pool: PagePool, page_tokens: int, *, enabled: bool, records: int | None
    ) -> None:
        self._pool = pool
        self._page_tokens = page_tokens
        self._enabled = enabled
        self._tree = PrefixTree(pool, page_tokens, records)
        self._counts = CacheStats()

    @property
    def free_pages(self) -> int:
        """Pages that are free, or that nobody but the index holds."""
        return self._pool.available + self._pool.reclaimable

    def make_room(self, pages: int, rows: int) -> None:
        """Have `pages` pages free, and some to spare when the index must give up any."""
        missing = pages - self._pool.available
        if missing > 0:
            self._tree.evict(missing + SPARE_PAGES * rows)

    def adopt(self, sequence: Sequence, request: GenerationRequest) -> int:
        """Give the sequence the longest cached prefix of its tokens; returns its length."""
        # A preempted choice comes again; it is counted once.
        counts = self._counts if sequence.generated == 0 else CacheStats()
        counts.admitted_sequences += 1
        if not (self._enabled and request.reuse_context):
            counts.forced_cold_sequences += 1
            return 0
        if request.prompt_logprobs is not None and sequence.choice == 0:
            counts.lookup_bypass_sequences += 1
            return 0
        reused = sequence.adopt(self._tree)
        rewound = reused > 0 and reused >= sequence.length - self._page_tokens
        counts.hit_sequences += reused > 0
        counts.no_reusable_prefix_plans += reused == 0
        counts.standard_plans += reused > 0
        counts.full_input_rewind_plans += rewound
        counts.matched_tokens += reused
        counts.reused_tokens += reused
        return reused

    def publish_prompt(self, sequence: Sequence, request: GenerationRequest) -> None:
        """The prompt is computed: others may use it from now on."""
        self._publish(sequence, request, min(sequence.computed, sequence.prompt_length))

    def publish_all(self, sequence: Sequence, request: GenerationRequest) -> None:
        """The choice has ended well: a next turn may continue it."""
        if request.cache_generated_tokens:
            self._publish(sequence, request, sequence.computed)

    def _publish(self, sequence: Sequence, request: GenerationRequest, tokens: int) -> None:
        if self._enabled and request.reuse_context:
            self._counts.publication_attempts += 1
            self._tree.publish(sequence, tokens)

    def clear(self) -> None:
        self._tree.clear()

    def check_idle(self) -> None:
        """Without any sequence, a page is free or cached. Raises RuntimeError otherwise."""
        self._pool.check()
        free, cached = self._pool.available, self._tree.cached_pages
        if free + cached != self._pool.size:
            raise RuntimeError(f"pages leaked: {free} free, {cached} cached of {self._pool.size}")

    def stats(self) -> CacheStats:
        counts, tree = self._counts, self._tree.stats
        counts.current_records = tree["records"]
        counts.evicted_pages = tree["evicted_pages"]
        counts.evicted_records = tree["evicted_records"]
        counts.published_pages = tree["published_pages"]
        counts.existing_published_endpoints = tree["existing_publications"]
        counts.published_endpoints = tree["publications"] - tree["existing_publications"]
        counts.cached_pages = tree["pages"]
        counts.reclaimable_pages = self._pool.reclaimable
        counts.free_pages = self._pool.available
        counts.total_pages = self._pool.size
        return counts

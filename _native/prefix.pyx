"""The prefix index: which pages hold the keys and values of which tokens (see prefix.h)."""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from edgeserve._native.pages cimport PagePool
from edgeserve._native.sequence cimport Sequence, to_ids


@cython.no_gc  # in no cycle; and the collector must not take the pool away first
cdef class PrefixTree:
    def __cinit__(
        self, PagePool pool not None, int32_t page_tokens, max_records=None, max_pages=None
    ):
        for cap in (max_records, max_pages):
            if cap is not None and cap < 0:
                raise ValueError("a cap is not negative")
        self.pool = pool  # keeps it alive
        self.tree = new CPrefixTree(
            pool.pool[0],
            page_tokens,
            -1 if max_records is None else max_records,
            -1 if max_pages is None else max_pages,
        )

    def __dealloc__(self):
        del self.tree

    def match(self, tokens, bytes salt not None=b""):
        cdef vector[int32_t] ids = to_ids(tokens)
        return self.tree.match(ids.data(), <int32_t>ids.size(), salt)

    def publish(self, Sequence sequence not None, int32_t tokens):
        return sequence.sequence.publish(self.tree[0], tokens)

    def evict(self, int32_t pages):
        return self.tree.evict(pages)

    def clear(self):
        self.tree.clear()

    def check(self):
        self.tree.check()

    @property
    def cached_pages(self):
        return self.tree.cached_pages()

    @property
    def records(self):
        return self.tree.records()

    @property
    def stats(self):
        stats = self.tree.stats()
        return {
            "lookups": stats.lookups,
            "hits": stats.hits,
            "looked_up_tokens": stats.looked_up_tokens,
            "matched_tokens": stats.matched_tokens,
            "publications": stats.publications,
            "existing_publications": stats.existing_publications,
            "published_pages": stats.published_pages,
            "evicted_pages": stats.evicted_pages,
            "evicted_records": stats.evicted_records,
            "records": self.tree.records(),
            "pages": self.tree.cached_pages(),
        }

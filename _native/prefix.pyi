"""The prefix index: which pages already hold the keys and values of which tokens."""

from collections.abc import Sequence as Items
from typing import TypedDict

from edgeserve._native.pages import PagePool
from edgeserve._native.sequence import Sequence

class PrefixStats(TypedDict):
    lookups: int  # adoptions tried
    hits: int  # adoptions that matched at least a page
    looked_up_tokens: int  # tokens of the sequences that looked
    matched_tokens: int  # tokens whose computing was saved
    publications: int
    existing_publications: int  # found all their pages in the tree
    published_pages: int  # pages added
    evicted_pages: int
    evicted_records: int  # dropped by the cap on records
    records: int  # now
    pages: int  # now

class PrefixTree:
    """A tree over token ids in whole pages, one root per salt. Owned by the engine thread.

    It holds a reference to each of its pages. Tokens are compared, not only hashed. Pages leave
    least recently used first, from the ends of the branches, and never while a sequence uses them:
    an end in use is only forgotten, when a page before it is needed.
    """

    def __init__(
        self,
        pool: PagePool,
        page_tokens: int,
        max_records: int | None = None,
        max_pages: int | None = None,
    ) -> None:
        """`max_records` limits published endpoints (0 keeps none), `max_pages` pages held."""
    def match(self, tokens: Items[int], salt: bytes = b"") -> int:
        """Tokens that `Sequence.adopt` would take now: whole pages, always less than all tokens.

        Marks what it found as recently used; counts nothing.
        """
    def publish(self, sequence: Sequence, tokens: int) -> int:
        """Make the pages of the sequence's first `tokens` tokens reusable under its salt.

        Floored to whole pages; at most `sequence.computed`. Returns the pages added: content that
        is there already is only marked as used, and the sequence's own pages stay private.
        """
    def evict(self, pages: int) -> int:
        """Free `pages` pages, or all `PagePool.reclaimable`; returns how many became free."""
    def clear(self) -> None:
        """Forget everything. Pages in use by sequences stay with them."""
    def check(self) -> None:
        """Raise RuntimeError when the tree's own books do not agree. For tests."""
    @property
    def cached_pages(self) -> int:
        """Pages held."""
    @property
    def records(self) -> int:
        """Published endpoints held."""
    @property
    def stats(self) -> PrefixStats:
        """Counters since the start."""

"""KV pages by id, with reference counts. Owned by the engine thread."""

class PagePool:
    """Which pages of a backend's storage are free, and who counts on the others.

    Sequences and the prefix tree take and give pages natively; Python only watches.
    """

    def __init__(self, pages: int) -> None:
        """All of `pages` pages, free. Raises ValueError below 1."""
    @property
    def size(self) -> int:
        """All pages."""
    @property
    def available(self) -> int:
        """Free pages."""
    @property
    def reclaimable(self) -> int:
        """Pages that nobody but a prefix tree holds: what its `evict` can free at most."""
    def take(self, count: int) -> list[int]:
        """Page ids, each held once. Raises MemoryError, and takes none, when too few are free."""
    def hold(self, page: int) -> None:
        """One more reference to a taken page. Raises ValueError for a free one."""
    def give(self, page: int) -> None:
        """One reference less; the page is free after the last. Raises ValueError for a free one."""
    def references(self, page: int) -> int:
        """References to the page; 0 is free."""
    def check(self) -> None:
        """Raise RuntimeError unless free and taken pages are all pages, each counted once."""

"""The prefix tree against a dictionary of paths."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve._native.pages import PagePool
from edgeserve._native.prefix import PrefixTree
from edgeserve._native.sequence import Sequence
from tests.native.network import PAGE_TOKENS, Bench

Path = tuple[bytes, tuple[tuple[int, ...], ...]]  # salt, pages of tokens


class Reference:
    """The same rules over a dictionary of paths: [last use, page, is an endpoint]."""

    def __init__(self, pool: PagePool, max_records: int | None, max_pages: int | None) -> None:
        self.pool, self.max_records, self.max_pages = pool, max_records, max_pages
        self.nodes: dict[Path, list[int]] = {}
        self.clock = 0

    def walk(self, salt: bytes, tokens: list[int], pages: int) -> int:
        cut = [tuple(tokens[i * PAGE_TOKENS : (i + 1) * PAGE_TOKENS]) for i in range(pages)]
        for found in range(pages + 1):
            node = self.nodes.get((salt, tuple(cut[: found + 1])))
            if found == pages or node is None:
                return found
            self.clock += 1
            node[0] = self.clock
        raise AssertionError

    def match(self, salt: bytes, tokens: list[int]) -> int:
        return self.walk(salt, tokens, (len(tokens) - 1) // PAGE_TOKENS) * PAGE_TOKENS

    def leaves(self) -> list[Path]:
        parents = {(salt, pages[:-1]) for salt, pages in self.nodes}
        return sorted(self.nodes.keys() - parents, key=lambda path: self.nodes[path][0])

    def evict(self, keep: Path | None = None) -> bool:
        idle = [path for path in self.leaves() if path != keep and self.is_idle(path)]
        return bool(idle) and self.remove(idle[0])

    def evict_blocked(self) -> bool:
        for salt, pages in self.leaves():
            for depth in range(len(pages) - 1, 0, -1):
                if self.is_idle((salt, pages[:depth])):
                    while not self.remove(self.oldest_below(salt, pages[:depth])):
                        pass
                    return True
        return False

    def oldest_below(self, salt: bytes, pages: tuple[tuple[int, ...], ...]) -> Path:
        below = (path for path in self.leaves() if path[0] == salt)
        return next(path for path in below if path[1][: len(pages)] == pages)

    def is_idle(self, path: Path) -> bool:
        return self.pool.references(self.nodes[path][1]) == 1

    def remove(self, path: Path) -> bool:
        """Whether its page becomes free."""
        free = self.is_idle(path)
        parent = self.nodes.get((path[0], path[1][:-1]))
        if parent is not None and self.nodes[path][2]:
            parent[2] = 1
        del self.nodes[path]
        return free

    def publish(self, salt: bytes, tokens: list[int], pages: list[int]) -> int:
        if 0 in (len(pages), self.max_records, self.max_pages):
            return 0
        cut = tuple(tuple(tokens[i * 4 : (i + 1) * 4]) for i in range(len(pages)))
        done = start = self.walk(salt, tokens, len(pages))
        while done < len(pages):
            full = self.max_pages is not None and len(self.nodes) >= self.max_pages
            if full and not self.evict(keep=(salt, cut[:done])):
                break
            self.clock += 1
            done += 1
            self.nodes[salt, cut[:done]] = [self.clock, pages[done - 1], 0]
        if done:
            self.nodes[salt, cut[:done]][2] = 1
        self.trim()
        return done - start

    def trim(self) -> None:
        while self.max_records is not None:
            records = sorted((node[0], path) for path, node in self.nodes.items() if node[2])
            if len(records) <= self.max_records:
                return
            path = records[0][1]
            self.nodes[path][2] = 0
            while path in self.leaves() and not self.nodes[path][2]:
                del self.nodes[path]
                path = (path[0], path[1][:-1])


# Few tokens and few shapes, so that prefixes collide.
PROMPT = st.lists(st.integers(0, 1), min_size=1, max_size=5).map(
    lambda pages: [token for page in pages for token in (page, 7, 7, 7)]
)
ACTION = st.one_of(
    st.tuples(st.just("publish"), PROMPT, st.integers(1, 20), st.sampled_from([b"", b"x"])),
    st.tuples(st.just("match"), PROMPT, st.integers(0, 3), st.sampled_from([b"", b"x"])),
    st.tuples(st.just("adopt"), PROMPT, st.integers(0, 3), st.sampled_from([b"", b"x"])),
    st.tuples(st.just("evict"), PROMPT, st.integers(0, 3), st.just(b"")),
    st.tuples(st.just("release"), PROMPT, st.integers(0, 3), st.just(b"")),
)
CAP = st.sampled_from([None, None, 0, 1, 3, 6])


@given(st.lists(ACTION, max_size=25), CAP, CAP)
@settings(max_examples=200, deadline=None)
def test_tree_keeps_what_the_reference_keeps(actions, max_records, max_pages) -> None:  # type: ignore[no-untyped-def]
    bench = Bench(pages=200)
    tree = PrefixTree(bench.pool, PAGE_TOKENS, max_records, max_pages)
    reference = Reference(bench.pool, max_records, max_pages)
    live: list[Sequence] = []
    for action, prompt, number, salt in actions:
        prompt = prompt + [9] * (number % PAGE_TOKENS)
        if action == "publish":
            sequence = bench.computed(prompt, salt=salt)
            whole = min(number, len(prompt)) // PAGE_TOKENS
            pages = sequence.page_ids()[:whole]
            added = reference.publish(salt, prompt, pages)  # first: it looks at the pool's counts
            assert tree.publish(sequence, number) == added
            live.append(sequence)
        elif action == "match":
            assert tree.match(prompt, salt) == reference.match(salt, prompt)
        elif action == "adopt":
            sequence = bench.sequence(prompt, salt=salt)
            assert sequence.adopt(tree) == sequence.computed == reference.match(salt, prompt)
            live.append(sequence)
        elif action == "evict":
            evicted = sum(reference.evict() or reference.evict_blocked() for _ in range(number))
            reclaimable = bench.pool.reclaimable
            assert tree.evict(number) == evicted == min(number, reclaimable)
        elif live:
            live.pop(number % len(live)).release()
        tree.check()
        bench.pool.check()
        assert tree.cached_pages == len(reference.nodes)
        assert tree.records == sum(node[2] for node in reference.nodes.values())
    for sequence in live:
        sequence.release()
    assert bench.pool.reclaimable == tree.cached_pages == 200 - bench.pool.available
    assert tree.evict(1000) == len(reference.nodes)
    assert bench.pool.available == 200


def test_adopted_pages_give_the_same_tokens() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    prompt = list(range(1, 14))
    first = bench.sequence(prompt)
    expected = bench.complete(first)
    tree.publish(first, first.computed)
    first.release()
    second = bench.sequence(prompt)
    assert second.adopt(tree) == 12
    steps = bench.forward.steps
    assert bench.complete(second) == expected
    assert bench.forward.steps - steps == 10
    assert tree.stats["hits"] == 1 and tree.stats["matched_tokens"] == 12


def test_whole_prompt_is_never_matched() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    tree.publish(bench.computed(list(range(8))), 8)
    assert tree.match(list(range(8))) == 4
    assert tree.match([*range(8), 1]) == 8
    assert tree.match([]) == tree.match([0]) == 0
    assert bench.sequence(list(range(8))).adopt(tree) == 4
    assert bench.sequence([*range(8), 1]).adopt(tree, 5) == 4


def test_salts_do_not_share() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    tree.publish(bench.computed(list(range(8)), salt=b"a"), 8)
    assert tree.match(list(range(9)), b"a") == 8
    assert tree.match(list(range(9)), b"b") == tree.match(list(range(9))) == 0


def test_equal_content_is_published_once_and_stays_private() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    first, second = bench.computed(list(range(8))), bench.computed(list(range(8)))
    assert tree.publish(first, 8) == 2
    assert tree.publish(second, 8) == 0
    assert tree.stats["existing_publications"] == 1
    assert set(first.page_ids()).isdisjoint(second.page_ids())
    second.release()
    assert tree.cached_pages == 2 and bench.pool.reclaimable == 0
    first.release()
    assert bench.pool.reclaimable == 2


def test_pages_in_use_are_not_evicted() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    sequence = bench.computed(list(range(8)))
    tree.publish(sequence, 8)
    assert tree.evict(2) == 0 and tree.match(list(range(9))) == 8
    sequence.release()
    assert tree.evict(1) == 1 and tree.match(list(range(9))) == 4


def test_free_pages_before_an_end_in_use_are_evicted() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    first, second = bench.computed(list(range(8))), bench.computed(list(range(16)))
    other = bench.computed([5, 5, 5, 5])
    tree.publish(first, 8)
    tree.publish(second, 16)  # its first two pages stay its own; the tree has those of `first`
    tree.publish(other, 4)
    first.release()
    assert bench.pool.reclaimable == 2
    assert tree.evict(1) == 1 and bench.pool.reclaimable == 1
    assert tree.match(list(range(17))) == 4 and tree.match([5, 5, 5, 5, 5]) == 4
    assert tree.evict(5) == 1 and bench.pool.reclaimable == 0
    assert tree.match([5, 5, 5, 5, 5]) == 4, "a branch with nothing to free is left alone"
    tree.check()
    bench.pool.check()


def test_only_computed_tokens_are_published() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    sequence = bench.sequence(list(range(16)))
    bench.core.run([(sequence, 9)], 1)
    assert tree.publish(sequence, 16) == 2


def test_clear_leaves_sequences_their_pages() -> None:
    bench = Bench()
    tree = PrefixTree(bench.pool, PAGE_TOKENS)
    sequence = bench.computed(list(range(8)))
    tree.publish(sequence, 8)
    tree.clear()
    bench.pool.check()
    assert tree.cached_pages == 0 and tree.match(list(range(9))) == 0
    assert bench.pool.available == 64 - sequence.pages


def test_tree_refuses_another_pool_and_negative_caps() -> None:
    bench, other = Bench(), Bench()
    with pytest.raises(ValueError, match="another pool"):
        bench.sequence([1, 2]).adopt(PrefixTree(other.pool, PAGE_TOKENS))
    with pytest.raises(ValueError, match="cap"):
        PrefixTree(bench.pool, PAGE_TOKENS, max_records=-1)
    with pytest.raises(ValueError, match="at least 1 token"):
        PrefixTree(bench.pool, 0)

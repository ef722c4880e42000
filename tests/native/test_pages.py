"""The page pool against a dictionary of counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeserve._native.pages import PagePool

PAGES = 6
STEPS = st.lists(st.tuples(st.sampled_from(["take", "hold", "give"]), st.integers(0, PAGES)))


@given(STEPS)
@settings(max_examples=200, deadline=None)
def test_pool_counts_as_a_dictionary_does(steps: list[tuple[str, int]]) -> None:
    pool = PagePool(PAGES)
    counts: dict[int, int] = {}
    for action, number in steps:
        if action == "take":
            if number > PAGES - len(counts):
                with pytest.raises(MemoryError):
                    pool.take(number)
            else:
                taken = pool.take(number)
                assert len(taken) == len(set(taken)) == number and not counts.keys() & set(taken)
                counts.update(dict.fromkeys(taken, 1))
        elif number == PAGES:
            with pytest.raises(IndexError):
                getattr(pool, action)(number)
        elif number not in counts:
            with pytest.raises(ValueError, match="free"):
                getattr(pool, action)(number)
        else:
            getattr(pool, action)(number)
            counts[number] += 1 if action == "hold" else -1
            counts = {page: count for page, count in counts.items() if count}
        pool.check()
        assert pool.available == PAGES - len(counts)
        assert [pool.references(page) for page in range(PAGES)] == [
            counts.get(page, 0) for page in range(PAGES)
        ]
    assert pool.size == PAGES and pool.reclaimable == 0


def test_pool_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="at least 1 page"):
        PagePool(0)
    with pytest.raises(ValueError, match="not negative"):
        PagePool(1).take(-1)
    with pytest.raises(IndexError):
        PagePool(1).references(1)

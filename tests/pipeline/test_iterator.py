"""The contract of `CancellableIterator`: who wakes, who waits, what is never cancelled."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Iterator

import pytest

from edgeserve import CancellableIterator


class Source:
    """A generator that waits for items, as a stream waits for an engine."""

    def __init__(self, *items: object) -> None:
        self.items: queue.SimpleQueue[object] = queue.SimpleQueue()
        for item in items:
            self.items.put(item)
        self.cancels = 0
        self.closed = threading.Event()

    def read(self) -> Iterator[object]:
        try:
            while (item := self.items.get()) is not None:
                yield item
        finally:
            self.closed.set()

    def cancel(self) -> None:
        self.cancels += 1
        self.items.put(None)

    def iterator(self) -> CancellableIterator[object]:
        return CancellableIterator(self.read(), self.cancel)  # type: ignore[arg-type]


def test_it_iterates() -> None:
    source = Source(1, 2, None)
    assert list(source.iterator()) == [1, 2]


def test_consuming_after_the_end_ends_again() -> None:
    stream = Source(1, None).iterator()
    assert list(stream) == [1]
    assert list(stream) == []
    with pytest.raises(StopIteration):
        next(stream)


def test_closing_after_a_clean_end_cancels_nothing() -> None:
    source = Source(1, None)
    stream = source.iterator()
    list(stream)
    stream.close()
    stream.cancel()
    assert source.cancels == 0
    assert not stream.cancelled


def test_cancel_only_asks() -> None:
    source = Source(1, 2)
    stream = source.iterator()
    assert next(stream) == 1
    stream.cancel()
    stream.cancel()
    assert source.cancels == 1
    assert not source.closed.is_set()
    assert list(stream) == [2]  # what was made before may still be read


def test_close_cancels_and_closes_the_generator() -> None:
    source = Source(1, 2)
    stream = source.iterator()
    next(stream)
    stream.close()
    assert source.cancels == 1
    assert source.closed.is_set()
    assert list(stream) == []
    stream.close()
    assert source.cancels == 1


def test_the_block_closes_it() -> None:
    source = Source(1, 2)
    with source.iterator() as stream:
        next(stream)
    assert source.closed.is_set()


def test_dropping_it_unread_cancels() -> None:
    source = Source(1, 2)
    stream = source.iterator()
    next(stream)
    del stream
    gc.collect()
    assert source.cancels == 1


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_another_thread_inside_next_wakes(how: str) -> None:
    source = Source()
    stream = source.iterator()
    got: list[list[object]] = []
    reader = threading.Thread(target=lambda: got.append(list(stream)))
    reader.start()
    getattr(stream, how)()
    reader.join(5)
    assert not reader.is_alive()
    assert got == [[]]
    assert source.cancels == 1


def test_close_waits_for_the_thread_inside_next() -> None:
    inside, leave = threading.Event(), threading.Event()

    def slow() -> Iterator[int]:
        inside.set()
        leave.wait(5)
        yield 1

    stream = CancellableIterator(slow(), lambda: None)  # type: ignore[arg-type]
    reader = threading.Thread(target=lambda: next(stream))
    reader.start()
    inside.wait(5)
    closer = threading.Thread(target=stream.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()  # still waits for the reader
    leave.set()
    closer.join(5)
    reader.join(5)
    assert not closer.is_alive()


def test_an_error_of_the_source_comes_out_and_ends_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    cancels: list[int] = []
    stream = CancellableIterator(broken(), lambda: cancels.append(1))  # type: ignore[arg-type]
    assert next(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        next(stream)
    assert list(stream) == []
    stream.close()
    assert cancels == []


def test_a_transformed_stream_can_be_wrapped() -> None:
    source = Source(1, 2)
    inner = source.iterator()

    def doubled() -> Iterator[object]:
        try:
            for item in inner:
                yield item * 2  # type: ignore[operator]
        finally:
            inner.close()

    outer = CancellableIterator(doubled(), inner.cancel)  # type: ignore[arg-type]
    assert next(outer) == 2
    outer.close()
    assert source.cancels == 1
    assert source.closed.is_set()


def test_closing_from_inside_does_not_deadlock() -> None:
    stream: CancellableIterator[int]

    def suicidal() -> Iterator[int]:
        yield 1
        stream.close()
        yield 2

    stream = CancellableIterator(suicidal(), lambda: None)  # type: ignore[arg-type]
    assert next(stream) == 1
    assert next(stream) == 2

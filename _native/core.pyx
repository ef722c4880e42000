"""Runs steps without the GIL until the next decision (see include/edgeserve/core.h)."""

from enum import IntEnum

cimport cython
from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from edgeserve._native.forward cimport CForward, Forward
from edgeserve._native.pages cimport CPagePool, PagePool
from edgeserve._native.sequence cimport CSequence, Sequence, to_ids
from edgeserve._native.stream cimport CRing, Ring

cdef extern from "edgeserve/core.h" namespace "edgeserve" nogil:
    cdef cppclass COutcome "edgeserve::Outcome":
        int32_t steps
        int32_t tokens
        int32_t sampled
        int reason

    cdef cppclass Work:
        Work(CSequence*, int32_t)
        Work()
        CSequence* sequence
        int32_t count

    cdef cppclass CCore "edgeserve::Core":
        CCore(CForward&, CPagePool&, CRing&, int32_t) except +
        COutcome run(vector[Work], int32_t) except +
        COutcome sample() except +
        void drop(const CSequence*) except +
        int32_t force(CSequence&, const vector[int32_t]&) except +
        float* logits(const CSequence*) except +
        void interrupt()
        cbool is_broken()
        int32_t vocab()


class Reason(IntEnum):
    STEP = 0
    FINISHED = 1
    INTERRUPTED = 2
    PAGES = 3
    LOGITS = 4
    HORIZON = 5


cdef tuple REASONS = tuple(Reason)


cdef class Outcome:
    cdef readonly int32_t steps
    cdef readonly int32_t tokens
    cdef readonly int32_t sampled
    cdef readonly object reason

    def __repr__(self):
        return (
            f"Outcome(steps={self.steps}, tokens={self.tokens}, sampled={self.sampled}, "
            f"reason={self.reason.name})"
        )


cdef Outcome to_outcome(const COutcome& outcome):
    cdef Outcome door = Outcome.__new__(Outcome)
    door.steps = outcome.steps
    door.tokens = outcome.tokens
    door.sampled = outcome.sampled
    door.reason = REASONS[<int>outcome.reason]
    return door


@cython.no_gc_clear  # forward, pool and ring outlive the native core
cdef class Core:
    cdef CCore* core
    cdef Forward forward
    cdef PagePool pool
    cdef Ring ring
    cdef list waiting  # sequences that `sample` may touch, kept alive
    cdef object fault  # the exception that broke the core

    def __cinit__(self, Forward forward not None, PagePool pool not None, Ring ring not None, *,
                  int32_t max_rows):
        self.forward = forward
        self.pool = pool
        self.ring = ring
        self.core = new CCore(forward.forward[0], pool.pool[0], ring.ring, max_rows)

    def __dealloc__(self):
        del self.core

    def run(self, list work not None, int32_t horizon):
        cdef vector[Work] items
        cdef Work item
        cdef Sequence sequence
        cdef COutcome outcome
        if self.fault is not None:
            raise self.fault
        for sequence, count in work:
            if sequence is None:
                raise TypeError("work is pairs of a Sequence and a count")
            item.sequence = sequence.sequence
            item.count = count
            items.push_back(item)
        try:
            with nogil:
                outcome = self.core.run(items, horizon)
        except BaseException as fault:
            if self.core.is_broken():
                self.fault = fault
            raise
        self.waiting = work if <int>outcome.reason == 4 else None
        return to_outcome(outcome)

    def sample(self):
        cdef COutcome outcome
        if self.fault is not None:
            raise self.fault
        try:
            with nogil:
                outcome = self.core.sample()
        except BaseException as fault:
            if self.core.is_broken():
                self.fault = fault
            raise
        self.waiting = None
        return to_outcome(outcome)

    def drop(self, Sequence sequence=None):
        cdef const CSequence* which = NULL
        if sequence is not None:
            which = sequence.sequence
        self.core.drop(which)

    def force(self, Sequence sequence not None, ids):
        return self.core.force(sequence.sequence[0], to_ids(ids))

    def logits(self, Sequence sequence not None):
        cdef float* row = self.core.logits(sequence.sequence)
        view = PyMemoryView_FromMemory(
            <char*>row, self.core.vocab() * sizeof(float), PyBUF_WRITE
        )
        return view.cast("f")

    def interrupt(self):
        self.core.interrupt()

    @property
    def broken(self):
        return self.core.is_broken()

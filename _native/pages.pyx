"""KV pages by id, with reference counts (see include/edgeserve/pages.h)."""

from libc.stdint cimport int32_t
from libcpp.vector cimport vector


cdef class PagePool:
    def __cinit__(self, int32_t pages):
        self.pool = new CPagePool(pages)

    def __dealloc__(self):
        del self.pool

    @property
    def size(self):
        return self.pool.size()

    @property
    def available(self):
        return self.pool.available()

    @property
    def reclaimable(self):
        return self.pool.reclaimable()

    def take(self, int32_t count):
        if count < 0:
            raise ValueError("a count of pages is not negative")
        if count > self.pool.available():
            raise MemoryError("too few free pages")
        cdef vector[int32_t] pages = vector[int32_t](count)
        self.pool.take(count, pages.data())
        return pages

    def hold(self, int32_t page):
        self.pool.hold(page)

    def give(self, int32_t page):
        self.pool.give(page)

    def references(self, int32_t page):
        return self.pool.references(page)

    def check(self):
        self.pool.check()

from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cbool

cdef extern from "edgeserve/pages.h" namespace "edgeserve" nogil:
    cdef cppclass CPagePool "edgeserve::PagePool":
        CPagePool(int32_t) except +
        int32_t size()
        int32_t available()
        int32_t reclaimable()
        void take(int32_t, int32_t*) except +
        void hold(int32_t) except +
        cbool give(int32_t) except +
        int32_t references(int32_t) except +
        void check() except +


cdef class PagePool:
    cdef CPagePool* pool

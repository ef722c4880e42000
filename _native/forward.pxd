# The C++ interface between core and backends, and the base class of all doors to a backend.

from libc.stdint cimport int32_t

cdef extern from "edgeserve/forward.h" namespace "edgeserve" nogil:
    cdef cppclass Span:
        int32_t start
        int32_t count
        const int32_t* pages

    cdef cppclass Step:
        const int32_t* ids
        int32_t tokens
        const Span* spans
        int32_t span_count
        const int32_t* outputs
        int32_t output_count
        float* logits

    cdef cppclass CForward "edgeserve::Forward":
        int32_t vocab()
        int32_t page_tokens()
        int32_t pages()
        int32_t step_tokens()
        void run(const Step&) except +
        void copy_page(int32_t, int32_t) except +


cdef class Forward:
    cdef CForward* forward

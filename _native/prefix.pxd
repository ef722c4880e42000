from libc.stdint cimport int32_t, int64_t
from libcpp.string cimport string

from edgeserve._native.pages cimport CPagePool, PagePool

cdef extern from "edgeserve/prefix.h" namespace "edgeserve" nogil:
    cdef cppclass CPrefixStats "edgeserve::PrefixStats":
        int64_t lookups
        int64_t hits
        int64_t looked_up_tokens
        int64_t matched_tokens
        int64_t publications
        int64_t existing_publications
        int64_t published_pages
        int64_t evicted_pages
        int64_t evicted_records

    cdef cppclass CPrefixTree "edgeserve::PrefixTree":
        CPrefixTree(CPagePool&, int32_t, int64_t, int64_t) except +
        int32_t match(const int32_t*, int32_t, const string&) except +
        int32_t evict(int32_t) except +
        void clear() except +
        void check() except +
        int64_t cached_pages()
        int64_t records()
        const CPrefixStats& stats()


cdef class PrefixTree:
    cdef CPrefixTree* tree
    cdef PagePool pool

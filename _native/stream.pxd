from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from edgeserve._native.sampler cimport TokenLogprob

cdef extern from "edgeserve/vocabulary.h" namespace "edgeserve" nogil:
    cdef cppclass string_view "std::string_view":
        const char* data()
        size_t size()

    cdef cppclass CVocabulary "edgeserve::Vocabulary":
        CVocabulary() except +
        void add(const char*, int64_t) except +
        void set_special(int32_t) except +
        int32_t size()
        string_view piece(int32_t)
        cbool is_special(int32_t)

cdef extern from "edgeserve/stops.h" namespace "edgeserve" nogil:
    cdef cppclass CStops "edgeserve::Stops":
        CStops(vector[string]) except +
        const string& string_at "string"(int32_t)

cdef extern from "edgeserve/text.h" namespace "edgeserve" nogil:
    cdef cppclass Mark:
        int32_t offset
        int32_t token

    cdef cppclass TextSettings:
        shared_ptr[const CStops] stops
        cbool include_stop
        cbool skip_special_tokens

    cdef cppclass Gain "edgeserve::TextStream::Gain":
        string text
        vector[Mark] marks
        int32_t stop

    cdef cppclass CTextStream "edgeserve::TextStream":
        CTextStream(const CVocabulary&, TextSettings) except +
        void feed(int32_t, cbool, Gain&) except +
        void cut(cbool, Gain&) except +
        const CStops& stops()

cdef extern from "edgeserve/ring.h" namespace "edgeserve" nogil:
    cdef cppclass Piece:
        int64_t sequence
        cbool is_prompt
        string text
        vector[int32_t] tokens
        vector[TokenLogprob] logprobs
        vector[Mark] marks
        int32_t finish
        int32_t stop_token
        cbool has_stop
        string stop
        int32_t phase

    cdef cppclass CRing "edgeserve::Ring":
        CRing() except +
        int fileno()
        vector[Piece] drain() except +
        void close()


cdef TextSettings text_settings(stop, cbool include_stop, cbool skip_special_tokens) except *


cdef class Vocabulary:
    cdef CVocabulary vocabulary


cdef class TextStream:
    cdef CTextStream* stream
    cdef Vocabulary vocabulary


cdef class Ring:
    cdef CRing ring

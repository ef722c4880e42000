from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from edgeserve._native.pages cimport CPagePool, PagePool
from edgeserve._native.prefix cimport CPrefixTree
from edgeserve._native.sampler cimport CSamplerSettings
from edgeserve._native.stream cimport CVocabulary, TextSettings, Vocabulary

cdef extern from "edgeserve/reasoning.h" namespace "edgeserve" nogil:
    cdef cppclass ReasoningSettings:
        cbool starts_inside
        vector[vector[int32_t]] end_markers
        vector[vector[int32_t]] start_markers
        int32_t budget
        vector[int32_t] closing
        cbool constrained

    cdef cppclass CReasoning "edgeserve::Reasoning":
        int phase()
        int32_t tokens()
        int32_t since()

cdef extern from "edgeserve/sequence.h" namespace "edgeserve" nogil:
    cdef cppclass SequenceSettings:
        CSamplerSettings sampler
        TextSettings text
        ReasoningSettings reasoning
        int32_t max_tokens
        int32_t max_length
        vector[int32_t] eos_ids
        vector[int32_t] stop_token_ids
        cbool ignore_eos
        int32_t logprobs
        int32_t prompt_logprobs
        cbool hook
        string salt

    cdef cppclass CSequence "edgeserve::Sequence":
        CSequence(
            int64_t, int32_t, vector[int32_t], const CVocabulary&, CPagePool&, int32_t,
            SequenceSettings,
        ) except +
        int64_t id()
        int32_t choice()
        int32_t length()
        int32_t prompt_length()
        int32_t generated()
        int32_t computed()
        int32_t pending()
        int32_t finish()
        const vector[int32_t]& tokens()
        const vector[int32_t]& pages()
        int32_t pages_for(int32_t) except +
        int32_t adopt(CPrefixTree&, int32_t) except +
        int32_t publish(CPrefixTree&, int32_t) except +
        CSequence* fork(int64_t, int32_t) except +
        void release() except +
        void set_mask(const uint32_t*, int32_t) except +
        const CReasoning& reasoning()
        cbool needs_mask()
        int32_t constraint_start()
        int32_t forced()
        cbool constrained


cdef vector[int32_t] to_ids(tokens) except *


cdef class Sequence:
    cdef CSequence* sequence
    cdef Vocabulary vocabulary
    cdef PagePool pool

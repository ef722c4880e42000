from libc.stdint cimport int32_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.pair cimport pair
from libcpp.vector cimport vector

cdef extern from "edgeserve/sampler.h" namespace "edgeserve" nogil:
    cdef cppclass CSamplerSettings "edgeserve::SamplerSettings":
        double temperature
        int32_t top_k
        double top_p
        double min_p
        double typical_p
        double repetition_penalty
        double frequency_penalty
        double presence_penalty
        vector[pair[int32_t, float]] bias
        vector[vector[int32_t]] bad_words
        vector[int32_t] suppress_ids
        vector[int32_t] end_ids
        int32_t min_tokens
        uint64_t seed
        void check() except +

    cdef cppclass CPenalties "edgeserve::Penalties":
        CPenalties() except +
        void note_prompt(int32_t) except +
        void note_generated(int32_t) except +

    cdef cppclass Draft:
        pass

    cdef cppclass TokenLogprob:
        int32_t token
        double logprob
        vector[pair[int32_t, double]] top

    cdef cppclass CSampler "edgeserve::Sampler":
        CSampler(int32_t) except +
        int32_t choose(const Draft&, float*) except +
        TokenLogprob logprob(const float*, int32_t, int32_t) except +

cdef CSamplerSettings read_settings(sampler, suppress_ids) except *

cdef tuple to_logprob(const TokenLogprob& logprob)


cdef class Sampler:
    cdef CSampler* sampler
    cdef int32_t vocab

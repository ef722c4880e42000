"""How the next token is chosen from a row of logits (see include/edgeserve/sampler.h)."""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

cdef extern from *:
    """
    #include "edgeserve/philox.h"
    #include "edgeserve/sampler.h"

    // A Draft holds references, so it is made and used in one expression.
    static int32_t choose_once(edgeserve::Sampler& sampler, const edgeserve::SamplerSettings& settings,
                               const edgeserve::Penalties& penalties,
                               const std::vector<int32_t>& tokens, int32_t generated, int32_t choice,
                               const std::vector<uint32_t>& mask, float* logits) {
      return sampler.choose({settings, penalties, tokens, generated, choice,
                             mask.empty() ? nullptr : mask.data(), (int32_t)mask.size()}, logits);
    }

    static std::vector<uint32_t> philox_words(const uint32_t* words) {
      const auto bits = edgeserve::philox({words[0], words[1], words[2], words[3]},
                                          {words[4], words[5]});
      return {bits.begin(), bits.end()};
    }

    static double uniform_token(uint64_t seed, int32_t choice, int32_t position) {
      return edgeserve::uniform(seed, choice, position, edgeserve::Draw::TOKEN);
    }
    """
    int32_t choose_once(
        CSampler&, const CSamplerSettings&, const CPenalties&, const vector[int32_t]&, int32_t,
        int32_t, const vector[uint32_t]&, float*
    ) except + nogil
    vector[uint32_t] philox_words(const uint32_t*) nogil
    double uniform_token(uint64_t, int32_t, int32_t) nogil


cdef CSamplerSettings read_settings(sampler, suppress_ids) except *:
    """What SamplerSettings of edgeserve/sampling.py say."""
    cdef CSamplerSettings settings
    settings.temperature = sampler.temperature
    settings.top_k = sampler.top_k
    settings.top_p = sampler.top_p
    settings.min_p = sampler.min_p
    settings.typical_p = sampler.typical_p
    settings.repetition_penalty = sampler.repetition_penalty
    settings.frequency_penalty = sampler.frequency_penalty
    settings.presence_penalty = sampler.presence_penalty
    settings.bias = sampler.logit_bias
    settings.bad_words = sampler.bad_words
    settings.suppress_ids = suppress_ids
    settings.min_tokens = sampler.min_tokens
    settings.seed = sampler.seed
    return settings


cdef tuple to_logprob(const TokenLogprob& logprob):
    cdef size_t i
    top = [(logprob.top[i].first, logprob.top[i].second) for i in range(logprob.top.size())]
    return (logprob.token, logprob.logprob, tuple(top))


def philox(counter, key):
    cdef uint32_t[6] words
    words[:] = [*counter, *key]
    return tuple(philox_words(words))


def uniform(uint64_t seed, int32_t choice, int32_t position):
    return uniform_token(seed, choice, position)


cdef vector[float] to_row(logits, int32_t vocab) except *:
    cdef const float[::1] view = logits
    if view.shape[0] != vocab:
        raise ValueError(f"a row has {vocab} logits, not {view.shape[0]}")
    cdef vector[float] row = vector[float](vocab)
    memcpy(row.data(), &view[0], vocab * sizeof(float))
    return row


cdef class Sampler:
    def __cinit__(self, int32_t vocab):
        if vocab < 1:
            raise ValueError("a vocabulary has at least 1 id")
        self.vocab = vocab
        self.sampler = new CSampler(vocab)

    def __dealloc__(self):
        del self.sampler

    def choose(
        self, logits, settings, tokens, *, prompt_length=None, int32_t choice=0, mask=(),
        end_ids=(), suppress_ids=()
    ):
        cdef CSamplerSettings native = read_settings(settings, suppress_ids)
        native.end_ids = end_ids
        native.check()
        cdef vector[float] row = to_row(logits, self.vocab)
        cdef vector[int32_t] ids = tokens
        cdef vector[uint32_t] words = mask
        cdef CPenalties penalties
        cdef size_t i, prompt = ids.size() if prompt_length is None else prompt_length
        for i in range(ids.size()):
            if i < prompt:
                penalties.note_prompt(ids[i])
            else:
                penalties.note_generated(ids[i])
        return choose_once(
            self.sampler[0], native, penalties, ids, <int32_t>(ids.size() - prompt), choice, words,
            row.data(),
        )

    def logprob(self, logits, int32_t token, int32_t top=0):
        if not 0 <= token < self.vocab:
            raise IndexError("a token id is beyond the vocabulary")
        cdef vector[float] row = to_row(logits, self.vocab)
        return to_logprob(self.sampler.logprob(row.data(), token, top))

"""One choice of one request: tokens, pages, settings and the state of its text (sequence.h)."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from edgeserve._native.pages cimport PagePool
from edgeserve._native.prefix cimport PrefixTree
from edgeserve._native.sampler cimport read_settings
from edgeserve._native.stream cimport Vocabulary, text_settings


cdef vector[int32_t] to_ids(tokens) except *:
    """Token ids from an int32 buffer, or from any sequence of ints."""
    cdef vector[int32_t] ids
    cdef const int32_t[::1] view
    try:
        view = tokens
    except (TypeError, ValueError):  # no buffer, or one of other items
        ids.reserve(len(tokens))
        for token in tokens:
            ids.push_back(token)
        return ids
    ids.resize(view.shape[0])
    if view.shape[0]:
        memcpy(ids.data(), &view[0], view.shape[0] * sizeof(int32_t))
    return ids


cdef ReasoningSettings read_reasoning(reasoning) except *:
    """What ReasoningRules of edgeserve/generation.py says."""
    cdef ReasoningSettings settings
    if reasoning is None:
        return settings
    settings.starts_inside = reasoning.starts_inside
    settings.end_markers = reasoning.end_markers
    settings.start_markers = reasoning.start_markers
    settings.budget = -1 if reasoning.budget is None else reasoning.budget
    settings.closing = reasoning.closing
    settings.constrained = reasoning.constrained
    return settings


cdef Sequence wrap(CSequence* sequence, Vocabulary vocabulary, PagePool pool):
    cdef Sequence door = Sequence.__new__(Sequence)
    door.sequence = sequence
    door.vocabulary = vocabulary
    door.pool = pool
    return door


@cython.no_gc  # in no cycle; and the collector must not take the pool away first
cdef class Sequence:
    def __init__(
        self,
        int64_t id,
        prompt,
        Vocabulary vocabulary not None,
        PagePool pool not None,
        int32_t page_tokens,
        *,
        sampler,
        int32_t max_tokens,
        int32_t max_length,
        int32_t choice=0,
        stop=(),
        cbool include_stop=False,
        stop_token_ids=(),
        eos_ids=(),
        cbool ignore_eos=False,
        suppress_ids=(),
        cbool skip_special_tokens=True,
        int32_t logprobs=-1,
        int32_t prompt_logprobs=-1,
        cbool hook=False,
        reasoning=None,
        bytes salt not None=b"",
    ):
        cdef SequenceSettings settings
        settings.sampler = read_settings(sampler, suppress_ids)
        settings.text = text_settings(stop, include_stop, skip_special_tokens)
        settings.reasoning = read_reasoning(reasoning)
        settings.max_tokens = max_tokens
        settings.max_length = max_length
        settings.eos_ids = eos_ids
        settings.stop_token_ids = stop_token_ids
        settings.ignore_eos = ignore_eos
        settings.logprobs = logprobs
        settings.prompt_logprobs = prompt_logprobs
        settings.hook = hook
        settings.salt = salt
        if self.sequence is not NULL:
            raise RuntimeError("a sequence is made once")
        self.vocabulary = vocabulary  # both are kept alive
        self.pool = pool
        self.sequence = new CSequence(
            id, choice, to_ids(prompt), vocabulary.vocabulary, pool.pool[0], page_tokens, settings
        )

    def __dealloc__(self):
        del self.sequence

    @property
    def id(self):
        return self.sequence.id()

    @property
    def choice(self):
        return self.sequence.choice()

    @property
    def length(self):
        return self.sequence.length()

    @property
    def prompt_length(self):
        return self.sequence.prompt_length()

    @property
    def generated(self):
        return self.sequence.generated()

    @property
    def computed(self):
        return self.sequence.computed()

    @property
    def pending(self):
        return self.sequence.pending()

    @property
    def finish(self):
        return self.sequence.finish()

    @property
    def pages(self):
        return self.sequence.pages().size()

    @property
    def phase(self):
        return self.sequence.reasoning().phase()

    @property
    def phase_start(self):
        return self.sequence.reasoning().since()

    @property
    def reasoning_tokens(self):
        return self.sequence.reasoning().tokens()

    @property
    def forced(self):
        return self.sequence.forced()

    @property
    def needs_mask(self):
        return self.sequence.needs_mask()

    @property
    def constraint_start(self):
        return self.sequence.constraint_start()

    @property
    def constrained(self):
        return self.sequence.constrained

    @constrained.setter
    def constrained(self, cbool value):
        self.sequence.constrained = value

    def set_mask(self, bits):
        cdef const unsigned char[::1] view = memoryview(bits).cast("B")
        if view.shape[0] == 0 or view.shape[0] % sizeof(uint32_t):
            raise ValueError("a mask is at least one word of 32 bits, in whole words")
        cdef vector[uint32_t] words = vector[uint32_t](view.shape[0] // sizeof(uint32_t))
        memcpy(words.data(), &view[0], view.shape[0])
        self.sequence.set_mask(words.data(), <int32_t>words.size())

    def pages_for(self, int32_t tokens):
        return self.sequence.pages_for(tokens)

    def adopt(self, PrefixTree tree not None, limit=None):
        return self.sequence.adopt(tree.tree[0], self.sequence.length() if limit is None else limit)

    def fork(self, int64_t id, int32_t choice):
        return wrap(self.sequence.fork(id, choice), self.vocabulary, self.pool)

    def release(self):
        self.sequence.release()

    def page_ids(self):
        return self.sequence.pages()

    def tokens(self):
        cdef const vector[int32_t]* ids = &self.sequence.tokens()
        cdef bytes raw = (<const char*>ids.data())[:ids.size() * sizeof(int32_t)]
        return memoryview(raw).cast("i")

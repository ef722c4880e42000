"""Networks behind the core's interface that are not a backend (see include/edgeserve/oracle.h)."""

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t

from edgeserve._native.forward cimport CForward, Forward, Step

cdef extern from "edgeserve/oracle.h" namespace "edgeserve" nogil:
    cdef cppclass ForwardShape:
        int32_t vocab
        int32_t page_tokens
        int32_t pages
        int32_t step_tokens

    ctypedef int (*RunCallback "edgeserve::CallbackForward::Run")(void*, const Step*)
    ctypedef int (*CopyCallback "edgeserve::CallbackForward::Copy")(void*, int32_t, int32_t)

    cdef cppclass CCallbackForward "edgeserve::CallbackForward":
        CCallbackForward(ForwardShape, void*, RunCallback, CopyCallback) except +

    cdef cppclass CHashForward "edgeserve::HashForward":
        CHashForward(ForwardShape, int64_t, int64_t) except +
        int64_t steps()
        int64_t max_tokens()
        int64_t copies()


cdef ForwardShape to_shape(int32_t vocab, int32_t page_tokens, int32_t pages, int32_t step_tokens):
    cdef ForwardShape shape
    shape.vocab = vocab
    shape.page_tokens = page_tokens
    shape.pages = pages
    shape.step_tokens = step_tokens
    return shape


cdef object ids_view(const int32_t* ids, int32_t count):
    if count == 0:
        return memoryview(b"").cast("i")
    return PyMemoryView_FromMemory(<char*>ids, count * sizeof(int32_t), PyBUF_READ).cast("i")


# A Python exception stays set in the engine thread while the C++ exception carries the news; the
# door of Core lets it through.
cdef int run_callback(void* context, const Step* step) except -1 with gil:
    cdef CallbackForward door = <CallbackForward>context
    cdef int32_t s, page_tokens = door.page_tokens_
    spans = []
    for s in range(step.span_count):
        start, count = step.spans[s].start, step.spans[s].count
        pages = (start + count + page_tokens - 1) // page_tokens
        spans.append((start, count, ids_view(step.spans[s].pages, pages)))
    if step.output_count:
        logits = PyMemoryView_FromMemory(
            <char*>step.logits,
            <int64_t>step.output_count * door.vocab_ * sizeof(float),
            PyBUF_WRITE,
        ).cast("f", (step.output_count, door.vocab_))
    else:
        logits = memoryview(bytearray()).cast("f")
    outputs = ids_view(step.outputs, step.output_count)
    door.call(ids_view(step.ids, step.tokens), spans, outputs, logits)
    return 0


cdef int copy_callback(void* context, int32_t source, int32_t target) except -1 with gil:
    cdef CallbackForward door = <CallbackForward>context
    if door.copy is None:
        raise NotImplementedError("this network copies no pages")
    door.copy(source, target)
    return 0


cdef class CallbackForward(Forward):
    cdef object call
    cdef object copy
    cdef int32_t vocab_
    cdef int32_t page_tokens_

    def __cinit__(
        self,
        call,
        copy_page=None,
        *,
        int32_t vocab,
        int32_t page_tokens,
        int32_t pages,
        int32_t step_tokens,
    ):
        self.call = call
        self.copy = copy_page
        self.vocab_ = vocab
        self.page_tokens_ = page_tokens
        self.forward = <CForward*>new CCallbackForward(
            to_shape(vocab, page_tokens, pages, step_tokens),
            <void*>self,
            <RunCallback>run_callback,
            <CopyCallback>copy_callback,
        )

    def __dealloc__(self):
        del self.forward


cdef class HashForward(Forward):
    def __cinit__(
        self,
        *,
        int32_t vocab,
        int32_t page_tokens,
        int32_t pages,
        int32_t step_tokens,
        int64_t step_us=0,
        int64_t fault_after=-1,
    ):
        self.forward = <CForward*>new CHashForward(
            to_shape(vocab, page_tokens, pages, step_tokens), step_us, fault_after
        )

    def __dealloc__(self):
        del self.forward

    @property
    def steps(self):
        return (<CHashForward*>self.forward).steps()

    @property
    def max_tokens(self):
        return (<CHashForward*>self.forward).max_tokens()

    @property
    def copies(self):
        return (<CHashForward*>self.forward).copies()

"""The CPU backend's doors: packed weights in memory, and the network that runs on them."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from edgeserve._native.forward cimport Forward, Span, Step
from edgeserve._native.kernels cimport c_kernels, c_packed_bytes, format_from, Packed


def available_cpus():
    """Ids of the CPUs that this process may use."""
    return tuple(c_available_cpus())


cdef class CpuWeights:
    """A packed file in private huge pages. Read-only once loaded; shared by the networks on it."""

    def __cinit__(self, str path, int64_t size, int threads=1):
        cdef bytes name = path.encode()
        self.memory = new Memory(<size_t>size)
        self.bytes = size
        cdef int count = threads
        cdef bytes keep = name
        cdef const char* raw = keep
        self.memory.read_file(raw, count)

    def __dealloc__(self):
        del self.memory


cdef Packed matrix_from(CpuWeights weights, object spec) except *:
    cdef Packed packed
    offset, format, rows, columns = spec
    packed.format = format_from(format)
    packed.out, packed.in_ = rows, columns
    check_range(weights, offset, c_packed_bytes(packed.format, packed.out, packed.in_))
    packed.data = weights.memory.data() + <int64_t>offset
    return packed


cdef int check_range(CpuWeights weights, int64_t offset, int64_t size) except -1:
    if offset < 0 or offset + size > weights.bytes:
        raise ValueError("a tensor of the layout lies outside the packed file")
    return 0


cdef CProgram program_from(CpuWeights weights, object program) except *:
    cdef CProgram result
    cdef Instruction instruction
    cdef Rope rope
    for spec in program.matrices:
        result.matrices.push_back(matrix_from(weights, spec))
    for offset, width in program.vectors:
        check_range(weights, offset, 4 * <int64_t>width)
        result.vectors.push_back(<const float*>(weights.memory.data() + <int64_t>offset))
    for frequencies, factor, interleaved in program.ropes:
        rope.frequencies = frequencies
        rope.factor, rope.interleaved = factor, interleaved
        result.ropes.push_back(rope)
    for offset, row_bytes in program.buffers:
        result.buffers.push_back(BufferSpec(offset, row_bytes))
    for kv_heads, head_dim in program.layers:
        result.layers.push_back(KvSpec(kv_heads, head_dim))
    for code, wait, outputs, args, numbers in program.instructions:
        instruction.code = <Code><int32_t>code
        instruction.wait, instruction.outputs = wait, outputs
        instruction.args, instruction.numbers = args, numbers
        result.instructions.push_back(instruction)
    result.arena_row_bytes = program.arena_row_bytes
    result.kv_f32 = program.kv_f32
    result.vocab = program.vocab
    return result


cdef class CpuForward(Forward):
    """A compiled network with its threads and its storage of keys and values."""

    def __cinit__(self, CpuWeights weights not None, program, *, int32_t pages, int32_t page_tokens,
                  int32_t step_tokens, int threads, cpus=(), str isa=None):
        cdef bytes name = (isa or "").encode()
        cdef CpuLimits limits = CpuLimits(pages, page_tokens, step_tokens)
        cdef vector[int] pinned = cpus
        if page_tokens < 16 or page_tokens % 16:
            raise ValueError("pages hold a multiple of 16 tokens")
        if threads < 1 or pages < 1 or step_tokens < 1:
            raise ValueError("threads, pages and step_tokens are at least 1")
        self.weights = weights
        self.threads = threads
        self.isa = (<bytes>c_kernels(name).isa).decode()
        self.forward = new CCpuForward(program_from(weights, program), c_kernels(name), limits,
                                       threads, pinned)

    def __dealloc__(self):
        del self.forward

    def run(self, const int32_t[::1] ids not None, spans, const int32_t[::1] outputs not None):
        """Logits [outputs, vocab] of one step. A span is (start, count, page ids). The core calls
        the C++ interface instead."""
        cdef vector[Span] native
        cdef Span span
        cdef const int32_t[::1] pages
        cdef Step step
        kept = []
        for start, count, page_ids in spans:
            pages = np.ascontiguousarray(page_ids, np.int32)
            kept.append(pages)
            span.start, span.count, span.pages = start, count, &pages[0]
            native.push_back(span)
        logits = np.empty((outputs.shape[0], self.forward.vocab()), np.float32)
        cdef float[:, ::1] to = logits
        step.ids, step.tokens = &ids[0], <int32_t>ids.shape[0]
        step.spans, step.span_count = native.data(), <int32_t>native.size()
        step.outputs = &outputs[0] if outputs.shape[0] else NULL
        step.output_count = <int32_t>outputs.shape[0]
        step.logits = &to[0, 0] if outputs.shape[0] else NULL
        with nogil:
            self.forward.run(step)
        return logits

    def copy_page(self, int32_t source, int32_t target):
        """Keys and values of page `source`, all layers, become those of page `target`."""
        if not (0 <= source < self.forward.pages() and 0 <= target < self.forward.pages()):
            raise IndexError("no such page")
        self.forward.copy_page(source, target)

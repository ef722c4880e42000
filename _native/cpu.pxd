# The CPU backend's C++ interface: program, memory, the network itself.

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as bool_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from edgeserve._native.forward cimport CForward, Forward
from edgeserve._native.kernels cimport Kernels, Packed

cdef extern from "edgeserve/program.h" namespace "edgeserve" nogil:
    cdef enum class Code(int32_t):
        pass

    cdef cppclass Instruction:
        Code code
        bool_t wait
        bool_t outputs
        vector[int32_t] args
        vector[float] numbers

    cdef cppclass Rope:
        vector[float] frequencies
        float factor
        bool_t interleaved

    cdef struct BufferSpec:
        int64_t offset
        int64_t row_bytes

    cdef struct KvSpec:
        int32_t kv_heads
        int32_t head_dim

    cdef cppclass CProgram "edgeserve::Program":
        vector[Packed] matrices
        vector[const float*] vectors
        vector[Rope] ropes
        vector[BufferSpec] buffers
        int64_t arena_row_bytes
        vector[KvSpec] layers
        bool_t kv_f32
        int32_t vocab
        vector[Instruction] instructions

cdef extern from "edgeserve/memory.h" namespace "edgeserve" nogil:
    cdef cppclass Memory:
        Memory(size_t) except +
        uint8_t* data()
        size_t size()
        void read_file(const string&, int) except +

cdef extern from "edgeserve/threads.h" namespace "edgeserve" nogil:
    vector[int] c_available_cpus "edgeserve::available_cpus"()

cdef extern from "edgeserve/cpu_forward.h" namespace "edgeserve" nogil:
    cdef struct CpuLimits:
        int32_t pages
        int32_t page_tokens
        int32_t step_tokens

    cdef cppclass CCpuForward "edgeserve::CpuForward"(CForward):
        CCpuForward(CProgram, const Kernels&, const CpuLimits&, int, vector[int]) except +


cdef class CpuWeights:
    cdef Memory* memory
    cdef readonly object bytes


cdef class CpuForward(Forward):
    cdef CpuWeights weights
    cdef readonly str isa
    cdef readonly int threads

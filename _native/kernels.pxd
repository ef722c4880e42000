# The kernels' C++ interface: packed weights, tables of kernels per instruction set.

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t
from libcpp cimport bool as bool_t

cdef extern from "edgeserve/packed.h" namespace "edgeserve" nogil:
    cdef enum class Kind(int32_t):
        F32
        F16
        BF16
        INT

    cdef struct Format:
        Kind kind
        int32_t bits
        int32_t group
        int32_t zero
        int32_t minimum
        int32_t wide_scale

    cdef struct Packed:
        Format format
        int32_t out
        int32_t in_ "in"
        const uint8_t* data

    cdef struct QuantBlock:
        float scale

    int64_t c_packed_bytes "edgeserve::packed_bytes"(const Format&, int32_t, int32_t)
    int32_t in_padded(int32_t)
    int32_t tiles_of(int32_t)

cdef extern from "edgeserve/pack.h" namespace "edgeserve" nogil:
    cdef enum class Source(int32_t):
        pass

    Format c_exact_format "edgeserve::exact_format"(Source) except +
    void c_pack_matrix "edgeserve::pack_matrix"(
        Source, const uint8_t*, int64_t, int32_t, int32_t, const Format&, int, uint8_t*) except +

cdef extern from "edgeserve/kernels.h" namespace "edgeserve" nogil:
    cdef struct Matmul:
        const Packed* weight
        const float* bias
        const void* x
        int64_t x_stride
        float* out
        int64_t out_stride
        int32_t rows
        float* scratch

    cdef enum class Unary(int32_t):
        pass

    cdef enum class Binary(int32_t):
        pass

    cdef struct Norm:
        const float* weight
        const float* bias
        int32_t width
        float eps
        float offset

    cdef struct Attend:
        const float* q
        int64_t q_stride
        float* out
        int64_t out_stride
        int32_t rows
        int32_t first
        int32_t group
        int32_t head_dim
        const uint8_t* pages
        const int32_t* page_ids
        int64_t page_stride
        int64_t head_offset
        int64_t block_stride
        int32_t page_tokens
        bool_t kv_f32
        float scale
        float soft_cap
        int32_t window
        const float* sinks
        float* scratch

    int32_t kPanels
    int32_t kAttendRows
    int32_t dim_padded(int32_t)
    int64_t attend_scratch(int32_t, int32_t)

    cdef struct Kernels:
        const char* isa
        void (*matmul_int8)(const Matmul&, int32_t, int32_t)
        void (*matmul_bf16)(const Matmul&, int32_t, int32_t)
        void (*matmul_f32)(const Matmul&, int32_t, int32_t)
        void (*gather)(const Packed&, int32_t, float, float*)
        void (*quantise)(const float*, int32_t, QuantBlock*)
        void (*to_bf16)(const float*, int32_t, uint16_t*)
        void (*rms_norm)(const Norm&, const float*, float*)
        void (*layer_norm)(const Norm&, const float*, float*)
        void (*unary)(Unary, float, const float*, int32_t, float*)
        void (*binary)(Binary, const float*, const float*, int32_t, float*)
        void (*gated)(Unary, const float*, const float*, int32_t, float*)
        void (*rope)(const float*, const float*, int32_t, int32_t, bool_t, float*)
        void (*store_key)(const float*, int32_t, int32_t, bool_t, uint8_t*)
        void (*store_value)(const float*, int32_t, int32_t, bool_t, uint8_t*)
        void (*attend)(const Attend&)

    const Kernels& c_kernels "edgeserve::kernels"(const char*) except +
    int32_t c_available_isas "edgeserve::available_isas"(const char**, int32_t)

cdef Format format_from(object format) except *

"""The kernels one by one, on NumPy arrays: what the packer uses, and what tests and benches call."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t


cdef const Kernels* table(str isa) except NULL:
    cdef bytes name = (isa or "").encode()
    return &c_kernels(name)


cdef Format format_from(object format) except *:
    cdef Format result
    kind, result.bits, result.group, result.zero, result.minimum, result.wide_scale = format
    result.kind = <Kind><int32_t>kind
    return result


def isas():
    """Names of the instruction sets that this machine can run, best first."""
    cdef const char* names[16]
    cdef int32_t count = c_available_isas(names, 16)
    return tuple((<bytes>names[i]).decode() for i in range(count))


def packed_bytes(format, int32_t rows, int32_t columns):
    return c_packed_bytes(format_from(format), rows, columns)


def exact_format(int32_t source):
    cdef Format f = c_exact_format(<Source>source)
    return (<int32_t>f.kind, f.bits, f.group, f.zero, f.minimum, f.wide_scale)


def pack(int32_t source, const uint8_t[:, ::1] rows not None, int32_t columns, format, *,
         int threads=1):
    cdef Format f = format_from(format)
    cdef int32_t count = <int32_t>rows.shape[0]
    packed = np.empty(c_packed_bytes(f, count, columns), np.uint8)
    cdef uint8_t[::1] to = packed
    with nogil:
        c_pack_matrix(<Source>source, &rows[0, 0], rows.shape[1], count, columns, f, threads, &to[0])
    return packed


cdef class Matrix:
    """A packed matrix [rows, columns] in an array of its own."""

    cdef Packed packed
    cdef object owner
    cdef readonly int32_t rows, columns

    def __init__(self, const uint8_t[::1] data not None, format, int32_t rows, int32_t columns):
        self.packed.format = format_from(format)
        if data.shape[0] != c_packed_bytes(self.packed.format, rows, columns):
            raise ValueError("the packed bytes do not fit format and shape")
        self.packed.out, self.packed.in_ = rows, columns
        self.packed.data = &data[0]
        self.owner = data
        self.rows, self.columns = rows, columns

    def gather(self, int32_t row, *, float scale=1.0, str isa=None):
        if not 0 <= row < self.rows:
            raise IndexError(row)
        out = np.empty(self.columns, np.float32)
        cdef float[::1] to = out
        table(isa).gather(self.packed, row, scale, &to[0])
        return out

    def matmul(self, const float[:, ::1] x not None, str form, *, bias=None, str isa=None):
        cdef const Kernels* k = table(isa)
        cdef int32_t padded = in_padded(self.columns), r
        if x.shape[1] != self.columns:
            raise ValueError("x has another width than the matrix")
        out = np.full((x.shape[0], self.rows), np.nan, np.float32)
        scratch = np.empty(<int64_t>kPanels * padded * 16, np.float32)
        prepared = np.zeros(x.shape[0] * padded * 4 + 64, np.uint8)
        cdef float[:, ::1] to = out
        cdef float[::1] space = scratch
        cdef uint8_t[::1] converted = prepared
        cdef const float[::1] added
        cdef uint8_t* at = &converted[0] + (-(<size_t>&converted[0]) & 63)
        cdef Matmul job
        job.weight = &self.packed
        job.bias = NULL
        if bias is not None:
            added = bias
            job.bias = &added[0]
        job.out, job.out_stride, job.rows = &to[0, 0], self.rows, <int32_t>x.shape[0]
        job.scratch = &space[0]
        job.x, job.x_stride = at, padded
        if form == "int8":
            job.x_stride = padded // 32
            for r in range(job.rows):
                k.quantise(&x[r, 0], self.columns, <QuantBlock*>at + r * job.x_stride)
            k.matmul_int8(job, 0, tiles_of(self.rows))
        elif form == "bf16":
            for r in range(job.rows):
                k.to_bf16(&x[r, 0], self.columns, <uint16_t*>at + r * padded)
            k.matmul_bf16(job, 0, tiles_of(self.rows))
        elif form == "f32":
            job.x, job.x_stride = &x[0, 0], self.columns
            k.matmul_f32(job, 0, tiles_of(self.rows))
        else:
            raise ValueError("form is int8, bf16 or f32")
        return out


def quantise(const float[::1] x not None, *, str isa=None):
    """The activations after rounding to int8 in blocks of 32: (codes, scales)."""
    cdef int32_t blocks = (<int32_t>x.shape[0] + 31) // 32
    raw = np.zeros(64 * blocks + 64, np.uint8)
    cdef uint8_t[::1] to = raw
    cdef size_t skip = -(<size_t>&to[0]) & 63
    table(isa).quantise(&x[0], <int32_t>x.shape[0], <QuantBlock*>(&to[0] + skip))
    both = raw[skip : skip + 64 * blocks].reshape(blocks, 64)
    return both[:, :32].view(np.int8).ravel()[: x.shape[0]], both[:, 32:36].copy().view(np.float32)


def rms_norm(const float[::1] x not None, const float[::1] weight not None, *, float eps,
             float offset=0.0, str isa=None):
    out = np.empty(x.shape[0], np.float32)
    cdef float[::1] to = out
    cdef Norm norm = Norm(&weight[0], NULL, <int32_t>x.shape[0], eps, offset)
    table(isa).rms_norm(norm, &x[0], &to[0])
    return out


def layer_norm(const float[::1] x not None, const float[::1] weight not None,
               const float[::1] bias, *, float eps, str isa=None):
    out = np.empty(x.shape[0], np.float32)
    cdef float[::1] to = out
    cdef Norm norm = Norm(&weight[0], NULL, <int32_t>x.shape[0], eps, 0.0)
    if bias is not None:
        norm.bias = &bias[0]
    table(isa).layer_norm(norm, &x[0], &to[0])
    return out


def unary(int32_t kind, const float[::1] x not None, *, float number=0.0, str isa=None):
    out = np.empty(x.shape[0], np.float32)
    cdef float[::1] to = out
    table(isa).unary(<Unary>kind, number, &x[0], <int32_t>x.shape[0], &to[0])
    return out


def binary(int32_t kind, const float[::1] a not None, const float[::1] b not None, *,
           str isa=None):
    out = np.empty(a.shape[0], np.float32)
    cdef float[::1] to = out
    table(isa).binary(<Binary>kind, &a[0], &b[0], <int32_t>a.shape[0], &to[0])
    return out


def gated(int32_t kind, const float[::1] gate not None, const float[::1] up not None, *,
          str isa=None):
    out = np.empty(gate.shape[0], np.float32)
    cdef float[::1] to = out
    table(isa).gated(<Unary>kind, &gate[0], &up[0], <int32_t>gate.shape[0], &to[0])
    return out


def rope(const float[::1] x not None, const float[::1] angles not None, *, bint interleaved=False,
         str isa=None):
    """One head; angles: cosines, then sines, of the pairs that turn."""
    out = np.empty(x.shape[0], np.float32)
    cdef float[::1] to = out
    table(isa).rope(&x[0], &angles[0], <int32_t>x.shape[0], <int32_t>angles.shape[0], interleaved,
                    &to[0])
    return out


def attend(const float[:, :, ::1] q not None, const float[:, ::1] keys not None,
           const float[:, ::1] values not None, const int32_t[::1] pages not None, *, int32_t first,
           float scale, int32_t page_tokens=16, bint kv_f32=False, float soft_cap=0.0,
           int32_t window=0, sinks=None, str isa=None):
    """q [rows, heads, dim] at positions first.. attends to one head of keys and values
    [positions, dim], put into the given pages first."""
    cdef const Kernels* k = table(isa)
    cdef int32_t dim = <int32_t>q.shape[2], group = <int32_t>q.shape[1], position, r
    cdef int64_t block = 2 * 16 * dim_padded(dim) * (4 if kv_f32 else 2)
    cdef int64_t page = block * (page_tokens // 16)
    storage = np.full(int(page) * (max(pages) + 1), 0xff, np.uint8)  # NaN where nothing is written
    out = np.empty((q.shape[0], q.shape[1], q.shape[2]), np.float32)
    scratch = np.empty(attend_scratch(group, dim), np.float32)
    cdef uint8_t[::1] base = storage
    cdef float[:, :, ::1] to = out
    cdef float[::1] space = scratch
    cdef const float[::1] sink_view
    cdef uint8_t* at
    for position in range(<int32_t>keys.shape[0]):
        at = (&base[0] + pages[position // page_tokens] * page
              + position % page_tokens // 16 * block)
        k.store_key(&keys[position, 0], dim, position % 16, kv_f32, at)
        k.store_value(&values[position, 0], dim, position % 16, kv_f32, at + block // 2)
    cdef Attend job
    job.q_stride = job.out_stride = group * dim
    job.group, job.head_dim = group, dim
    job.pages, job.page_ids = &base[0], &pages[0]
    job.page_stride, job.head_offset, job.block_stride = page, 0, block
    job.page_tokens, job.kv_f32 = page_tokens, kv_f32
    job.scale, job.soft_cap, job.window = scale, soft_cap, window
    job.sinks = NULL
    job.scratch = &space[0]
    if sinks is not None:
        sink_view = sinks
        job.sinks = &sink_view[0]
    for r in range(0, <int32_t>q.shape[0], kAttendRows):
        job.q, job.out = &q[r, 0, 0], &to[r, 0, 0]
        job.first, job.rows = first + r, min(kAttendRows, <int32_t>q.shape[0] - r)
        k.attend(job)
    return out

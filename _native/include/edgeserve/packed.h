// How the CPU backend stores weights and quantised activations in memory.
//
// A matrix [out, in] is cut into tiles of 16 output rows, one tile after another; the last one is
// filled with zeros. Within a tile the 16 rows lie beside each other, in the 16 lanes of a register:
//
//   f32        per k: 16 floats
//   f16        per k: 16 halves
//   bf16       per pair of k: 16 lanes of 2
//   int, 8 bit per 4 k: 16 lanes of 4 codes
//   int, 4 bit per 8 k: 64 bytes; low nibbles are k 0..3 of each lane, high nibbles k 4..7
//
// An int tile is [scales][minimums][codes], each section a multiple of 64 bytes. Scales and minimums
// are 16 lanes per group of `group` k. A value is scale * (code - zero), or scale * code + minimum.
// `in` is filled up to a multiple of 32 with codes that count nothing (see Packed::in_padded).
//
// NOTE: everything inline here is static: kernels of several instruction sets include this file.
#pragma once

#include <cstdint>

namespace edgeserve {

enum class Kind : int32_t { F32 = 0, F16 = 1, BF16 = 2, INT = 3 };

constexpr int32_t kTile = 16;   // output rows of a tile
constexpr int32_t kBlock = 32;  // k of a block of activations

struct Format {
  Kind kind;
  int32_t bits;        // int: 4 or 8
  int32_t group;       // int: 16, 32, 64 or 128
  int32_t zero;        // int without minimums: the code that means 0
  int32_t minimum;     // int: 1 when there are minimums
  int32_t wide_scale;  // int: scales and minimums are f32 (a product of two levels), not f16
};

struct Packed {
  Format format;
  int32_t out;
  int32_t in;
  const uint8_t* data;
};

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

static inline int32_t in_padded(int32_t in) { return int32_t(round_up(in, kBlock)); }
static inline int32_t tiles_of(int32_t out) { return int32_t(ceil_div(out, kTile)); }
static inline int64_t groups_of(const Format& f, int32_t in) {
  return ceil_div(in_padded(in), f.group);
}
static inline int64_t scale_bytes(const Format& f, int32_t in) {
  return round_up(groups_of(f, in) * kTile * (f.wide_scale ? 4 : 2), 64);
}
static inline int64_t codes_offset(const Format& f, int32_t in) {
  return scale_bytes(f, in) * (f.minimum ? 2 : 1);
}
static inline int64_t tile_bytes(const Format& f, int32_t in) {
  switch (f.kind) {
    case Kind::F32: return int64_t(in_padded(in)) * kTile * 4;
    case Kind::F16:
    case Kind::BF16: return int64_t(in_padded(in)) * kTile * 2;
    default: return codes_offset(f, in) + int64_t(in_padded(in)) * kTile * f.bits / 8;
  }
}
static inline int64_t packed_bytes(const Format& f, int32_t out, int32_t in) {
  return tiles_of(out) * tile_bytes(f, in);
}

// 32 activations of one row, quantised: value = scale * code. The sums serve the zero points and
// minimums of the weights; `low` and `high` are those of the first and last 16.
struct alignas(64) QuantBlock {
  int8_t codes[32];
  float scale;
  int32_t minus_sum, minus_sum_low, minus_sum_high;  // -sum(codes)
  float sum, sum_low, sum_high;                      // scale * sum(codes)
  float unused;
};
static_assert(sizeof(QuantBlock) == 64, "one cache line per block");

}  // namespace edgeserve

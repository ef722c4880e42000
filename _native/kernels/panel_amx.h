// Sixteen rows of a panel in the chip's matrix unit. It sums a group's products exactly, in int32;
// what follows is the float chain of panel_block, so results agree bitwise with every other way.
#pragma once

#include "panel_int8.h"
#include "tile_config.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

constexpr int kBatch = 4;  // blocks: the unit needs some time from codes to sums

// Registers 0 to 3: sums, 4 and 5: activations, 6 and 7: weights; of 32 k.
inline void configure_int8() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.set(i, i < 6 ? kMatrixRows : kBlock / 4, i / 2 == 2 ? 32 : 64);
  _tile_loadconfig(&config);
}

// The products of one block: out[16 rows][16] = codes of x times codes of w.
#define ES_DOT_TILE(sums, left, right, j)                                  \
  if (j < count) {                                                         \
    _tile_zero(sums);                                                      \
    _tile_loadd(left, x[j].codes, stride);                                 \
    _tile_loadd(right, codes + j * 512, 64);                               \
    if (is_signed) _tile_dpbssd(sums, left, right);                        \
    else _tile_dpbsud(sums, left, right);                                  \
    _tile_stored(sums, out + j * size, 64);                                \
  }

// Those of `count` blocks, each `size` apart.
inline void dot_batch(const QuantBlock* x, int64_t stride, const uint8_t* codes, bool is_signed,
                      int count, int32_t* out, int size) {
  ES_DOT_TILE(0, 4, 6, 0)
  ES_DOT_TILE(1, 5, 7, 1)
  ES_DOT_TILE(2, 4, 6, 2)
  ES_DOT_TILE(3, 5, 7, 3)
}
#undef ES_DOT_TILE

// Rows [start, start + 16) of one panel.
template <bool Minimum>
inline void matrix_rows(const Matmul& m, const Shape& shape, const Panel& panel, int tile,
                        int start) {
  const QuantBlock* x = (const QuantBlock*)m.x + start * m.x_stride;
  const int64_t stride = m.x_stride * int64_t(sizeof(QuantBlock));
  alignas(64) int32_t dots[2][kBatch][kMatrixRows * kTile];
  F acc[kMatrixRows];
  for (F& a : acc) a = set1(0.0f);
  const auto dot_from = [&](int32_t b) {
    dot_batch(x + b, stride, panel.codes + int64_t(b) * 512, shape.is_signed,
              least(kBatch, shape.blocks - b), dots[b / kBatch % 2][0], kMatrixRows * kTile);
  };
  dot_from(0);
  for (int32_t b = 0; b < shape.blocks; ++b) {
    if (b % kBatch == 0 && b + kBatch < shape.blocks) dot_from(b + kBatch);
    const int32_t* dot = dots[b / kBatch % 2][b % kBatch];
    const int64_t group = b >> shape.group_shift;
    const F scale = load(panel.scales + group * kTile);
    const F minimum = Minimum ? load(panel.minimums + group * kTile) : scale;
#pragma GCC unroll 16
    for (int r = 0; r < kMatrixRows; ++r) {
      const QuantBlock& q = x[r * m.x_stride + b];
      acc[r] = fma(to_f32(load_i(dot + r * kTile)), mul(scale, set1(q.scale)), acc[r]);
      if (Minimum) acc[r] = fma(minimum, set1(q.sum), acc[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kMatrixRows; ++r) store_block(m, tile, start + r, acc[r]);
}

}  // namespace
}  // namespace ES_ISA
}  // namespace edgeserve

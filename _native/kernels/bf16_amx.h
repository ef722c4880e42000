// Linear layers in bf16 in the chip's matrix unit, for any number of rows: 32 k at a time, sums
// kept in the unit. A row's sums do not depend on the rows beside it.
#pragma once

#include "edgeserve/kernels.h"
#include "tile_config.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

constexpr int kPair = 2;             // blocks of rows, and tiles, that share what is read
constexpr int64_t kFarAhead = 4096;  // bytes

// Registers 0 to 3: sums [row block][tile], 4 and 5: activations, 6 and 7: weights.
inline void configure_bf16(int first_rows, int second_rows) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    const bool second = i == 2 || i == 3 || i == 5;
    config.set(i, i > 5 ? kMatrixRows : second ? second_rows : first_rows, 64);
  }
  _tile_loadconfig(&config);
}

struct Operands {
  const uint8_t* x[kPair];  // by row block
  const uint8_t* w[kPair];  // by tile
  int64_t x_bytes;          // between rows
};

template <int R, int T>
inline void accumulate(const Operands& o, int steps, bool ahead) {
  for (int i = 0; i < steps; ++i) {
    _tile_loadd(4, o.x[0] + 64 * i, o.x_bytes);
    if (R == 2) _tile_loadd(5, o.x[1] + 64 * i, o.x_bytes);
    for (int t = 0; ahead && t < T; ++t)
      for (int line = 0; line < 16; ++line)
        prefetch(o.w[t] + 1024 * i + 64 * line + kFarAhead);
    _tile_loadd(6, o.w[0] + 1024 * i, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (R == 2) _tile_dpbf16ps(2, 5, 6);
    if (T == 2) {
      _tile_loadd(7, o.w[1] + 1024 * i, 64);
      _tile_dpbf16ps(1, 4, 7);
      if (R == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
}

inline void take_sums(const Matmul& m, const float* sums, int tile, int start, int count) {
  const int n = tile * kTile, lanes = least(kTile, m.weight->out - n);
  const F bias = m.bias ? load_n(m.bias + n, lanes) : set1(0.0f);
  for (int r = 0; r < count; ++r)
    store_n(m.out + (start + r) * m.out_stride + n, add(load(sums + r * kTile), bias), lanes);
}

// Rows [start, start + count) of T tiles; R blocks of rows, as configured.
template <int R, int T>
inline void bf16_block(const Matmul& m, int tile, int start, int count) {
  const int64_t bytes = tile_bytes(m.weight->format, m.weight->in);
  Operands o;
  o.x_bytes = m.x_stride * 2;
  for (int i = 0; i < kPair; ++i) {
    o.x[i] = (const uint8_t*)m.x + (start + i * kMatrixRows) * o.x_bytes;
    o.w[i] = m.weight->data + (tile + i) * bytes;
  }
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  accumulate<R, T>(o, in_padded(m.weight->in) / 32, m.rows <= 8);
  alignas(64) float sums[4][kMatrixRows * kTile];
  _tile_stored(0, sums[0], 64);
  if (T == 2) _tile_stored(1, sums[1], 64);
  if (R == 2) _tile_stored(2, sums[2], 64);
  if (R == 2 && T == 2) _tile_stored(3, sums[3], 64);
  for (int t = 0; t < T; ++t) {
    take_sums(m, sums[t], tile + t, start, least(count, kMatrixRows));
    if (R == 2) take_sums(m, sums[2 + t], tile + t, start + kMatrixRows, count - kMatrixRows);
  }
}

inline void bf16_tiles(const Matmul& m, int tile_start, int tile_stop) {
  for (int start = 0, count; start < m.rows; start += count) {
    count = least(kPair * kMatrixRows, m.rows - start);
    const int second = count - kMatrixRows;
    configure_bf16(least(count, kMatrixRows), second > 0 ? second : 1);
    int tile = tile_start;
    for (; tile + 2 <= tile_stop; tile += 2)
      second > 0 ? bf16_block<2, 2>(m, tile, start, count)
                 : bf16_block<1, 2>(m, tile, start, count);
    if (tile < tile_stop)
      second > 0 ? bf16_block<2, 1>(m, tile, start, count)
                 : bf16_block<1, 1>(m, tile, start, count);
  }
  _tile_release();
}

}  // namespace
}  // namespace ES_ISA
}  // namespace edgeserve

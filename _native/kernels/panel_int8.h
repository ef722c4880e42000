// Many rows against a few tiles: the tiles are unpacked once into panels of plain bytes and floats,
// which stay in the L1 and L2 caches while rows pass by. The sums are those of matmul_int8.cpp, in
// the same order.
#pragma once

#include "edgeserve/kernels.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

// One unpacked tile: scales [groups][16], minimums [groups][16], codes [in / 4][16][4].
struct Panel {
  float* scales;
  float* minimums;
  uint8_t* codes;
};

// What all panels of a matrix have in common.
struct Shape {
  int32_t blocks;       // of 32 k
  int32_t group_shift;  // log2(blocks in a group), groups of 32 and more
  int32_t zero;         // code that means 0, but for what dot4 takes off itself
  bool is_signed;       // codes are stored with zero taken off
};

inline Panel panel_at(float* scratch, const Format& f, int32_t in, int index) {
  const int64_t floats = groups_of(f, in) * kTile, size = in_padded(in) * kTile / 4;
  float* at = scratch + index * (2 * floats + size);
  return {at, at + floats, (uint8_t*)(at + 2 * floats)};
}

inline void unpack_scales(const Format& f, const uint8_t* from, int64_t groups, float* to) {
  for (int64_t g = 0; g < groups; ++g)
    store(to + g * kTile, f.wide_scale ? load((const float*)from + g * kTile)
                                       : load_f16((const uint16_t*)from + g * kTile));
}

template <int Bits>
inline void unpack(const Packed& w, int32_t tile, const Shape& shape, const Panel& panel) {
  const Format& f = w.format;
  const uint8_t* from = w.data + tile * tile_bytes(f, w.in);
  unpack_scales(f, from, groups_of(f, w.in), panel.scales);
  if (f.minimum) unpack_scales(f, from + scale_bytes(f, w.in), groups_of(f, w.in), panel.minimums);
  const uint32_t zeros = uint32_t(shape.is_signed ? shape.zero : 0) * 0x01010101u;  // in each byte
  const I zero = set1_i(int32_t(zeros));
  const uint8_t* codes = from + codes_offset(f, w.in);
  uint8_t* to = panel.codes;
  for (int32_t quad = 0; quad < shape.blocks * 8; quad += 8 / Bits, codes += 64) {
    const I raw = load_i(codes);
    if (Bits == 8) {
      store_i(to, sub_i8(raw, zero)), to += 64;
    } else {
      store_i(to, sub_i8(low_nibbles(raw), zero)), to += 64;
      store_i(to, sub_i8(high_nibbles(raw), zero)), to += 64;
    }
  }
}

// R rows of T panels.
template <bool Wide, int Parts, bool Minimum, int R, int T>
inline void panel_block(const Shape& shape, const Panel* panels, const QuantBlock* const* x,
                        F (*acc)[T]) {
  constexpr int quads = 8 / Parts;
  constexpr bool centred = Minimum && !(Wide && kWideBias);  // codes count from 0
  for (int r = 0; r < R; ++r)
    for (int t = 0; t < T; ++t) acc[r][t] = set1(0.0f);
  for (int32_t b = 0; b < shape.blocks; ++b) {
    for (int part = 0; part < Parts; ++part) {
      I dot[R][T];
      for (int r = 0; r < R; ++r) {
        const QuantBlock& q = x[r][b];
        const int32_t minus_sum =
            Parts == 1 ? q.minus_sum : (part ? q.minus_sum_high : q.minus_sum_low);
        const I start = set1_i(centred ? 0 : minus_sum * shape.zero);
        for (int t = 0; t < T; ++t) dot[r][t] = start;
      }
      for (int quad = 0; quad < quads; ++quad) {
        const int at = quad + part * quads;
        I w[T];
        for (int t = 0; t < T; ++t) w[t] = load_i(panels[t].codes + (b * 8 + at) * 64);
        for (int r = 0; r < R; ++r) {
          const I four = set4(x[r][b].codes + 4 * at);
          for (int t = 0; t < T; ++t) dot[r][t] = dot4<Wide>(dot[r][t], w[t], four);
        }
      }
      const int64_t group = Parts == 2 ? 2 * int64_t(b) + part : b >> shape.group_shift;
      for (int t = 0; t < T; ++t) {
        const F scale = load(panels[t].scales + group * kTile);
        const F minimum = Minimum ? load(panels[t].minimums + group * kTile) : scale;
        for (int r = 0; r < R; ++r) {
          const QuantBlock& q = x[r][b];
          acc[r][t] = fma(to_f32(dot[r][t]), mul(scale, set1(q.scale)), acc[r][t]);
          const float s = Parts == 1 ? q.sum : (part ? q.sum_high : q.sum_low);
          if (Minimum) acc[r][t] = fma(minimum, set1(s), acc[r][t]);
        }
      }
    }
  }
}

inline void store_block(const Matmul& m, int tile, int row, F acc) {
  const int n = tile * kTile, lanes = least(kTile, m.weight->out - n);
  const F bias = m.bias ? load_n(m.bias + n, lanes) : set1(0.0f);
  store_n(m.out + row * m.out_stride + n, add(acc, bias), lanes);
}

// Rows [start, start + count) of T tiles, count <= R; missing rows repeat the last one.
template <bool Wide, int Parts, bool Minimum, int R, int T>
inline void rows_of_panels(const Matmul& m, const Shape& shape, const Panel* panels, int tile,
                           int start, int count) {
  const QuantBlock* x[R];
  F acc[R][T];
  for (int r = 0; r < R; ++r)
    x[r] = (const QuantBlock*)m.x + (start + least(r, count - 1)) * m.x_stride;
  panel_block<Wide, Parts, Minimum, R, T>(shape, panels, x, acc);
  for (int r = 0; r < count; ++r)
    for (int t = 0; t < T; ++t) store_block(m, tile + t, start + r, acc[r][t]);
}

template <bool Wide, int Parts, bool Minimum, int T>
inline void some_panels(const Matmul& m, const Shape& shape, const Panel* panels, int tile,
                        int start, int stop) {
  int r = start;
  for (; stop - r > 2; r += kPanelRows)
    rows_of_panels<Wide, Parts, Minimum, kPanelRows, T>(m, shape, panels, tile, r,
                                                        least(kPanelRows, stop - r));
  if (r < stop)
    rows_of_panels<Wide, Parts, Minimum, 2, T>(m, shape, panels, tile, r, stop - r);
}

}  // namespace
}  // namespace ES_ISA
}  // namespace edgeserve

#ifdef __AMX_INT8__
#include "panel_amx.h"
#endif

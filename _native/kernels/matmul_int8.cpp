// Linear layers with integer weights and int8 activations.
//
// Per group: an exact integer dot product, then one float multiply-add in group order. So a row's
// result is the same for every size of the register block and on every instruction set.
#include "edgeserve/kernels.h"
#include "panel_int8.h"
#include "vec.h"

namespace edgeserve {
namespace ES_ISA {
namespace {

// PERF: the chip's own prefetcher stops at every 4 KiB; tiles stream linearly, so we ask ahead.
constexpr int64_t kAhead = 12288;  // bytes

// A matrix's tile, and how to walk it.
struct Walk {
  const uint8_t* scales;
  const uint8_t* minimums;
  const uint8_t* codes;
  int32_t blocks;       // of 32 k
  int32_t group_shift;  // log2(blocks in a group), groups of 32 and more
  int32_t zero;
};

template <bool WideScale>
inline F load_scale(const uint8_t* base, int64_t group) {
  if (WideScale) return load((const float*)base + group * kTile);
  return load_f16((const uint16_t*)base + group * kTile);
}

// R rows, one tile. Part: number of 16-k halves of a block that have their own scale, 1 or 2.
template <int Bits, int Parts, bool Minimum, bool WideScale, int R>
inline void block(const Walk& w, const QuantBlock* const* x, F* acc) {
  constexpr int quads = 8 / Parts;
  constexpr bool wide = Bits == 8;
  for (int r = 0; r < R; ++r) acc[r] = set1(0.0f);
  const uint8_t* codes = w.codes;
  const int32_t zero = w.zero - (wide ? kWideBias : 0);
  for (int32_t b = 0; b < w.blocks; ++b) {
    for (int part = 0; part < Parts; ++part) {
      I dot[R];
      for (int r = 0; r < R; ++r) {
        const QuantBlock& q = x[r][b];
        const int32_t minus_sum =
            Parts == 1 ? q.minus_sum : (part ? q.minus_sum_high : q.minus_sum_low);
        dot[r] = set1_i(minus_sum * zero);
      }
      for (int quad = 0; quad < quads; quad += Bits == 4 ? 2 : 1) {
        const I raw = load_i(codes);
        prefetch(codes + kAhead);
        codes += 64;
        const int at = 4 * (quad + part * quads);
        if (Bits == 4) {
          const I low = low_nibbles(raw), high = high_nibbles(raw);
          for (int r = 0; r < R; ++r) {
            dot[r] = dot4<wide>(dot[r], low, set4(x[r][b].codes + at));
            dot[r] = dot4<wide>(dot[r], high, set4(x[r][b].codes + at + 4));
          }
        } else {
          for (int r = 0; r < R; ++r) dot[r] = dot4<wide>(dot[r], raw, set4(x[r][b].codes + at));
        }
      }
      const int64_t group = Parts == 2 ? 2 * int64_t(b) + part : b >> w.group_shift;
      prefetch(w.scales + group * kTile * (WideScale ? 4 : 2) + kAhead);
      const F scale = load_scale<WideScale>(w.scales, group);
      for (int r = 0; r < R; ++r)
        acc[r] = fma(to_f32(dot[r]), mul(scale, set1(x[r][b].scale)), acc[r]);
      if (Minimum) {
        prefetch(w.minimums + group * kTile * (WideScale ? 4 : 2) + kAhead);
        const F minimum = load_scale<WideScale>(w.minimums, group);
        for (int r = 0; r < R; ++r) {
          const QuantBlock& q = x[r][b];
          const float s = Parts == 1 ? q.sum : (part ? q.sum_high : q.sum_low);
          acc[r] = fma(minimum, set1(s), acc[r]);
        }
      }
    }
  }
}

// Rows [start, start + count) of one tile, count <= R; missing rows repeat the last one.
template <int Bits, int Parts, bool Minimum, bool WideScale, int R>
inline void rows_of_tile(const Matmul& m, const Walk& walk, int tile, int start, int count) {
  const QuantBlock* x[R];
  F acc[R];
  for (int r = 0; r < R; ++r)
    x[r] = (const QuantBlock*)m.x + (start + least(r, count - 1)) * m.x_stride;
  block<Bits, Parts, Minimum, WideScale, R>(walk, x, acc);
  const int n = tile * kTile, lanes = least(kTile, m.weight->out - n);
  const F bias = m.bias ? load_n(m.bias + n, lanes) : set1(0.0f);
  for (int r = 0; r < count; ++r)
    store_n(m.out + (start + r) * m.out_stride + n, add(acc[r], bias), lanes);
}

constexpr int64_t kRowsBytes = 256 << 10;  // of activations that stay in L2 while tiles pass by
constexpr int kFewRows = 8;                // more are worth unpacking a tile for

template <int Bits, int Parts, bool Minimum, bool WideScale>
void few_rows(const Matmul& m, int tile_start, int tile_stop) {
  const Packed& w = *m.weight;
  const Format& f = w.format;
  const int64_t bytes = tile_bytes(f, w.in), scales = scale_bytes(f, w.in);
  Walk walk = {};
  walk.blocks = in_padded(w.in) / kBlock;
  while ((kBlock << walk.group_shift) < f.group) ++walk.group_shift;
  walk.zero = Minimum ? 0 : f.zero;
  for (int tile = tile_start; tile < tile_stop; ++tile) {
    walk.scales = w.data + tile * bytes;
    walk.minimums = walk.scales + scales;
    walk.codes = walk.scales + codes_offset(f, w.in);
    int r = 0;
    if (kMaxRows == 8)
      for (; m.rows - r > 4; r += 8)
        rows_of_tile<Bits, Parts, Minimum, WideScale, kMaxRows>(m, walk, tile, r,
                                                                least(8, m.rows - r));
    for (; m.rows - r > 1; r += 4)
      rows_of_tile<Bits, Parts, Minimum, WideScale, 4>(m, walk, tile, r, least(4, m.rows - r));
    if (m.rows - r == 1) rows_of_tile<Bits, Parts, Minimum, WideScale, 1>(m, walk, tile, r, 1);
  }
}

// `m` without its first rows.
inline Matmul rows_from(const Matmul& m, int start) {
  Matmul rest = m;
  rest.x = (const QuantBlock*)m.x + start * m.x_stride;
  rest.out = m.out + start * m.out_stride;
  rest.rows = m.rows - start;
  return rest;
}

// Rows [start, stop) of the unpacked tiles.
template <int Bits, int Parts, bool Minimum>
void panels_of_rows(const Matmul& m, const Shape& shape, const Panel* panels, int tile, int count,
                    int start, int stop) {
#ifdef __AMX_INT8__
  if (Parts == 1) {
    for (; start < stop; start += kMatrixRows)
      for (int t = 0; t < count; ++t) matrix_rows<Minimum>(m, shape, panels[t], tile + t, start);
    return;
  }
#endif
  int t = 0;
  for (; t + kPanelTiles <= count; t += kPanelTiles)
    some_panels<Bits == 8, Parts, Minimum, kPanelTiles>(m, shape, panels + t, tile + t, start,
                                                        stop);
  for (; t < count; ++t)
    some_panels<Bits == 8, Parts, Minimum, 1>(m, shape, panels + t, tile + t, start, stop);
}

// The first `rows` rows.
template <int Bits, int Parts, bool Minimum>
void unpacked(const Matmul& m, int tile_start, int tile_stop, int rows) {
  const Packed& w = *m.weight;
  Shape shape = {};
  shape.blocks = in_padded(w.in) / kBlock;
  while ((kBlock << shape.group_shift) < w.format.group) ++shape.group_shift;
  shape.zero = (Minimum ? 0 : w.format.zero) - (Bits == 8 ? kWideBias : 0);
#ifdef __AMX_INT8__
  shape.is_signed = Parts == 1 && !Minimum;
#endif
  const int chunk = int(kRowsBytes / (shape.blocks * int64_t(sizeof(QuantBlock)))) / 48 * 48 + 48;
  Panel panels[kPanels];
  for (int tile = tile_start; tile < tile_stop; tile += kPanels) {
    const int count = least(kPanels, tile_stop - tile);
    for (int t = 0; t < count; ++t) {
      panels[t] = panel_at(m.scratch, w.format, w.in, t);
      unpack<Bits>(w, tile + t, shape, panels[t]);
    }
    for (int from = 0; from < rows; from += chunk)
      panels_of_rows<Bits, Parts, Minimum>(m, shape, panels, tile, count, from,
                                           least(from + chunk, rows));
  }
}

template <int Bits, int Parts, bool Minimum>
void matmul(const Matmul& m, int start, int stop) {
  int rows = m.rows > kFewRows ? m.rows : 0;  // that are worth unpacking tiles for
#ifdef __AMX_INT8__
  if (Parts == 1) rows = m.rows / kMatrixRows * kMatrixRows;
  if (rows) configure_int8();
#endif
  if (rows) unpacked<Bits, Parts, Minimum>(m, start, stop, rows);
#ifdef __AMX_INT8__
  if (rows) _tile_release();
#endif
  if (rows == m.rows) return;
  const Matmul rest = rows_from(m, rows);
  m.weight->format.wide_scale ? few_rows<Bits, Parts, Minimum, true>(rest, start, stop)
                              : few_rows<Bits, Parts, Minimum, false>(rest, start, stop);
}

template <int Bits, int Parts>
void choose(const Matmul& m, int start, int stop) {
  m.weight->format.minimum ? matmul<Bits, Parts, true>(m, start, stop)
                           : matmul<Bits, Parts, false>(m, start, stop);
}

}  // namespace

void matmul_int8(const Matmul& m, int32_t start, int32_t stop) {
  const Format& f = m.weight->format;
  if (f.bits == 4) {
    f.group == 16 ? choose<4, 2>(m, start, stop) : choose<4, 1>(m, start, stop);
  } else {
    f.group == 16 ? choose<8, 2>(m, start, stop) : choose<8, 1>(m, start, stop);
  }
}

}  // namespace ES_ISA
}  // namespace edgeserve

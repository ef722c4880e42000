// Linear layers in bf16 and in f32. Each output is one chain of multiply-adds over k, in order;
// several tiles or rows at a time keep the chip busy.
#include "edgeserve/kernels.h"
#include "vec.h"

#ifdef __AMX_BF16__
#include "bf16_amx.h"
#endif

namespace edgeserve {
namespace ES_ISA {
namespace {

// PERF: see matmul_int8.cpp.
constexpr int64_t kAhead = 2048;  // bytes

struct Float {  // x and panels in f32
  using X = float;
  static constexpr int step = 1;  // k per lane
  static inline F madd(F acc, const uint8_t* w, const X* x) {
    return fma(load((const float*)w), set1(*x), acc);
  }
};

struct Brain {  // x and weights in bf16
  using X = uint16_t;
  static constexpr int step = 2;
  static inline F madd(F acc, const uint8_t* w, const X* x) {
    return dot2_bf16(acc, load_i(w), set4(x));
  }
};

// R rows of T tiles.
template <class A, int R, int T>
inline void block(const Matmul& m, const uint8_t* const* panels, int tile, int start, int count) {
  const typename A::X* x[R];
  F acc[R][T];
  for (int r = 0; r < R; ++r) {
    x[r] = (const typename A::X*)m.x + (start + least(r, count - 1)) * m.x_stride;
    for (int t = 0; t < T; ++t) acc[r][t] = set1(0.0f);
  }
  const int in = m.weight->in;
  for (int k = 0; k < in; k += A::step)
    for (int t = 0; t < T; ++t) {
      const uint8_t* w = panels[t] + int64_t(k / A::step) * 64;
      if (R < 8) prefetch(w + kAhead);
      for (int r = 0; r < R; ++r) acc[r][t] = A::madd(acc[r][t], w, x[r] + k);
    }
  for (int t = 0; t < T; ++t) {
    const int n = (tile + t) * kTile, lanes = least(kTile, m.weight->out - n);
    const F bias = m.bias ? load_n(m.bias + n, lanes) : set1(0.0f);
    for (int r = 0; r < count; ++r)
      store_n(m.out + (start + r) * m.out_stride + n, add(acc[r][t], bias), lanes);
  }
}

// All rows of T tiles.
template <class A, int T>
inline void tiles(const Matmul& m, const uint8_t* const* panels, int tile) {
  constexpr int most = kMaxRows * T > 16 ? 4 : kMaxRows;
  int r = 0;
  if (most == 8)
    for (; m.rows - r > 4; r += 8) block<A, most, T>(m, panels, tile, r, least(8, m.rows - r));
  for (; m.rows - r > 1; r += 4) block<A, 4, T>(m, panels, tile, r, least(4, m.rows - r));
  if (m.rows - r == 1) block<A, 1, T>(m, panels, tile, r, 1);
}

template <class A>
inline void some_tiles(const Matmul& m, const uint8_t* const* panels, int tile, int count) {
  int t = 0;
  if (m.rows == 1) {
    if (count == 4) return tiles<A, 4>(m, panels, tile);
  }
  for (; t + 2 <= count; t += 2) tiles<A, 2>(m, panels + t, tile + t);
  if (t < count) tiles<A, 1>(m, panels + t, tile + t);
}

}  // namespace

void dequantise_tile(const Packed&, int32_t tile, float* panel);

void matmul_bf16(const Matmul& m, int32_t start, int32_t stop) {
#ifdef __AMX_BF16__
  bf16_tiles(m, start, stop);
#else
  const int64_t bytes = tile_bytes(m.weight->format, m.weight->in);
  for (int tile = start; tile < stop; tile += kPanels) {
    const int count = least(kPanels, stop - tile);
    const uint8_t* panels[kPanels];
    for (int t = 0; t < count; ++t) panels[t] = m.weight->data + (tile + t) * bytes;
    some_tiles<Brain>(m, panels, tile, count);
  }
#endif
}

void matmul_f32(const Matmul& m, int32_t start, int32_t stop) {
  const Packed& w = *m.weight;
  const int64_t bytes = tile_bytes(w.format, w.in), panel = int64_t(in_padded(w.in)) * kTile;
  for (int tile = start; tile < stop; tile += kPanels) {
    const int count = least(kPanels, stop - tile);
    const uint8_t* panels[kPanels];
    for (int t = 0; t < count; ++t) {
      panels[t] = w.data + (tile + t) * bytes;
      if (w.format.kind == Kind::F32) continue;
      dequantise_tile(w, tile + t, m.scratch + t * panel);
      panels[t] = (const uint8_t*)(m.scratch + t * panel);
    }
    some_tiles<Float>(m, panels, tile, count);
  }
}

}  // namespace ES_ISA
}  // namespace edgeserve

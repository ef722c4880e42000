// Sixteen 32-bit lanes, the same on every instruction set.
//
// All kernels are written on these lanes, so a sum has the same order and the same rounding
// everywhere: results agree bitwise between instruction sets (but for dot2_bf16, see below).
// A kernel source is compiled once per instruction set, in the namespace that ES_ISA names.
// NOTE: a kernel must not call inline functions of external linkage (std::min, std::vector): the
// linker keeps one copy of them, perhaps one that was compiled for a larger instruction set.
//
//   F            16 floats;  load store load_n store_n set1 add sub mul div fma max min sqrt
//   I            16 int32 or 64 bytes;  load_i store_i sub_i8 set1_i set4 (4 bytes to all
//                lanes) to_f32 round_i
//   load_f16, load_bf16, store_bf16 (round to nearest even), store_i8
//   dot4<Wide>   acc + sum over 4 bytes of (w - bias) * x; w unsigned, x signed. Wide: w may pass
//                6 bits, bias is kWideBias; otherwise bias is 0. Exact, never saturates.
//   dot2_bf16    acc + two products of bf16 pairs; the one operation whose rounding is the chip's
//   sum, greatest  over lanes, in the tree 8, 4, 2, 1
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include "vec_avx512.h"
#elif defined(__AVX2__)
#include "vec_avx2.h"
#else
#include "vec_scalar.h"
#endif

namespace edgeserve {
namespace ES_ISA {

static inline void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
static inline int least(int a, int b) { return a < b ? a : b; }
static inline F neg(F a) { return sub(set1(0.0f), a); }

// e^x to about 1 ulp; 0 below -87.3 and for -inf, exactly 1 at 0.
static inline F exp(F x) {
  const F low = set1(-87.3f);
  const F clipped = max(min(x, set1(88.3f)), low);
  const F n = round(mul(clipped, set1(1.44269504088896341f)));
  F r = fma(n, set1(-0.693359375f), clipped);
  r = fma(n, set1(2.12194440e-4f), r);
  F p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(mul(r, r), p, add(r, set1(1.0f)));
  return zero_below(mul(p, power_of_two(n)), x, low);
}

static inline F sigmoid(F x) { return div(set1(1.0f), add(set1(1.0f), exp(neg(x)))); }

static inline F tanh(F x) {
  const F e = exp(add(x, x));
  return sub(set1(1.0f), div(set1(2.0f), add(e, set1(1.0f))));
}

}  // namespace ES_ISA
}  // namespace edgeserve

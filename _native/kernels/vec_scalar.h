// The plain form of vec.h: loops over lanes. The oracle of all other instruction sets.
#pragma once

namespace edgeserve {
namespace ES_ISA {

struct F {
  float v[16];
};
struct I {
  int32_t v[16];
};

constexpr int kMaxRows = 8;    // rows of a register block
constexpr int kPanelRows = 6;  // the same against kPanelTiles panels
constexpr int kPanelTiles = 2;
constexpr int kWideBias = 0;   // what dot4<true> takes off the weights

#define ES_LANES for (int i = 0; i < 16; ++i)

static inline F load(const float* p) { F r; ES_LANES r.v[i] = p[i]; return r; }
static inline void store(float* p, F a) { ES_LANES p[i] = a.v[i]; }
static inline F load_n(const float* p, int n) { F r; ES_LANES r.v[i] = i < n ? p[i] : 0.0f; return r; }
static inline void store_n(float* p, F a, int n) { for (int i = 0; i < n; ++i) p[i] = a.v[i]; }
static inline F set1(float x) { F r; ES_LANES r.v[i] = x; return r; }
static inline F add(F a, F b) { ES_LANES a.v[i] += b.v[i]; return a; }
static inline F sub(F a, F b) { ES_LANES a.v[i] -= b.v[i]; return a; }
static inline F mul(F a, F b) { ES_LANES a.v[i] *= b.v[i]; return a; }
static inline F div(F a, F b) { ES_LANES a.v[i] /= b.v[i]; return a; }
static inline F fma(F a, F b, F c) { ES_LANES c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]); return c; }
static inline F max(F a, F b) { ES_LANES a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i]; return a; }
static inline F min(F a, F b) { ES_LANES a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i]; return a; }
static inline F abs(F a) { ES_LANES a.v[i] = __builtin_fabsf(a.v[i]); return a; }
static inline F sqrt(F a) { ES_LANES a.v[i] = __builtin_sqrtf(a.v[i]); return a; }
static inline F round(F a) { ES_LANES a.v[i] = __builtin_rintf(a.v[i]); return a; }
static inline F keep_below(F a, int n, float other) { ES_LANES a.v[i] = i < n ? a.v[i] : other; return a; }
static inline F keep_from(F a, int n, float other) { ES_LANES a.v[i] = i >= n ? a.v[i] : other; return a; }
static inline F zero_below(F a, F x, F limit) { ES_LANES a.v[i] = x.v[i] < limit.v[i] ? 0.0f : a.v[i]; return a; }

static inline F power_of_two(F n) {
  F r;
  ES_LANES {
    const uint32_t bits = uint32_t(int32_t(n.v[i]) + 127) << 23;
    std::memcpy(&r.v[i], &bits, 4);
  }
  return r;
}

static inline float sum(F a) {
  for (int w = 8; w; w /= 2)
    for (int i = 0; i < w; ++i) a.v[i] += a.v[i + w];
  return a.v[0];
}
static inline float greatest(F a) {
  for (int w = 8; w; w /= 2)
    for (int i = 0; i < w; ++i) a.v[i] = a.v[i] > a.v[i + w] ? a.v[i] : a.v[i + w];
  return a.v[0];
}

static inline F load_bf16(const uint16_t* p) {
  F r;
  ES_LANES {
    const uint32_t bits = uint32_t(p[i]) << 16;
    std::memcpy(&r.v[i], &bits, 4);
  }
  return r;
}
static inline void store_bf16(uint16_t* p, F a) {
  ES_LANES {
    uint32_t bits;
    std::memcpy(&bits, &a.v[i], 4);
    p[i] = uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
}
static inline float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16;
  uint32_t bits = uint32_t(h & 0x7fff) << 13;
  const uint32_t exponent = bits & (0x7c00u << 13);
  bits += (127 - 15) << 23;
  float f;
  if (exponent == (0x7c00u << 13)) bits += (128 - 16) << 23;  // inf, nan
  if (exponent == 0) {  // zero, subnormal
    bits += 1 << 23;
    std::memcpy(&f, &bits, 4);
    f -= 6.103515625e-05f;
    std::memcpy(&bits, &f, 4);
  }
  bits |= sign;
  std::memcpy(&f, &bits, 4);
  return f;
}
static inline F load_f16(const uint16_t* p) { F r; ES_LANES r.v[i] = half_to_float(p[i]); return r; }

static inline I load_i(const void* p) { I r; std::memcpy(r.v, p, 64); return r; }
static inline void store_i(void* p, I a) { std::memcpy(p, a.v, 64); }
static inline I set1_i(int32_t x) { I r; ES_LANES r.v[i] = x; return r; }
static inline I set4(const void* p) { int32_t x; std::memcpy(&x, p, 4); return set1_i(x); }
static inline F to_f32(I a) { F r; ES_LANES r.v[i] = float(a.v[i]); return r; }
static inline I round_i(F a) { I r; ES_LANES r.v[i] = int32_t(__builtin_rintf(a.v[i])); return r; }
static inline int32_t sum_i(I a) { int32_t s = 0; ES_LANES s += a.v[i]; return s; }
static inline void store_i8(int8_t* p, I a) { ES_LANES p[i] = int8_t(a.v[i]); }
static inline I low_nibbles(I a) { ES_LANES a.v[i] &= 0x0f0f0f0f; return a; }
static inline I high_nibbles(I a) { ES_LANES a.v[i] = (a.v[i] >> 4) & 0x0f0f0f0f; return a; }
static inline I sub_i8(I a, I b) {
  uint8_t x[64], y[64];
  std::memcpy(x, a.v, 64);
  std::memcpy(y, b.v, 64);
  for (int i = 0; i < 64; ++i) x[i] = uint8_t(x[i] - y[i]);
  std::memcpy(a.v, x, 64);
  return a;
}
template <int J>
static inline I byte_of(I a) { ES_LANES a.v[i] = (a.v[i] >> (8 * J)) & 0xff; return a; }
static inline F bf16_low(I a) {
  F r;
  ES_LANES { const uint32_t b = uint32_t(a.v[i]) << 16; std::memcpy(&r.v[i], &b, 4); }
  return r;
}
static inline F bf16_high(I a) {
  F r;
  ES_LANES { const uint32_t b = uint32_t(a.v[i]) & 0xffff0000u; std::memcpy(&r.v[i], &b, 4); }
  return r;
}

template <bool Wide>
static inline I dot4(I acc, I w, I x) {
  ES_LANES for (int j = 0; j < 32; j += 8)
    acc.v[i] += int32_t(uint8_t(w.v[i] >> j)) * int32_t(int8_t(x.v[i] >> j));
  return acc;
}
static inline F dot2_bf16(F acc, I w, I x) {
  return fma(bf16_high(w), bf16_high(x), fma(bf16_low(w), bf16_low(x), acc));
}

#undef ES_LANES

}  // namespace ES_ISA
}  // namespace edgeserve

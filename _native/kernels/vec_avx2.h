// vec.h on AVX2, FMA and F16C: two registers of 8 lanes.
#pragma once

#include <immintrin.h>

namespace edgeserve {
namespace ES_ISA {

struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};

constexpr int kMaxRows = 4;
constexpr int kPanelRows = 3;
constexpr int kPanelTiles = 1;
constexpr int kWideBias = 128;

static inline __m256i first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void store(float* p, F x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
static inline F load_n(const float* p, int n) {
  return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
}
static inline void store_n(float* p, F x, int n) {
  _mm256_maskstore_ps(p, first(n), x.a);
  _mm256_maskstore_ps(p + 8, first(n - 8), x.b);
}
static inline F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }

#define ES_BOTH(name, op)                                                        \
  static inline F name(F x, F y) { return {op(x.a, y.a), op(x.b, y.b)}; }
ES_BOTH(add, _mm256_add_ps)
ES_BOTH(sub, _mm256_sub_ps)
ES_BOTH(mul, _mm256_mul_ps)
ES_BOTH(div, _mm256_div_ps)
ES_BOTH(max, _mm256_max_ps)
ES_BOTH(min, _mm256_min_ps)
#undef ES_BOTH

static inline F fma(F x, F y, F z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
static inline F abs(F x) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
}
static inline F sqrt(F x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
static inline F round(F x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
static inline F keep_below(F x, int n, float other) {
  const __m256 o = _mm256_set1_ps(other);
  return {_mm256_blendv_ps(o, x.a, _mm256_castsi256_ps(first(n))),
          _mm256_blendv_ps(o, x.b, _mm256_castsi256_ps(first(n - 8)))};
}
static inline F keep_from(F x, int n, float other) {
  const __m256 o = _mm256_set1_ps(other);
  return {_mm256_blendv_ps(x.a, o, _mm256_castsi256_ps(first(n))),
          _mm256_blendv_ps(x.b, o, _mm256_castsi256_ps(first(n - 8)))};
}
static inline F zero_below(F v, F x, F limit) {
  return {_mm256_and_ps(v.a, _mm256_cmp_ps(x.a, limit.a, _CMP_NLT_UQ)),
          _mm256_and_ps(v.b, _mm256_cmp_ps(x.b, limit.b, _CMP_NLT_UQ))};
}
static inline __m256 power_of_two(__m256 n) {
  const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}
static inline F power_of_two(F n) { return {power_of_two(n.a), power_of_two(n.b)}; }

static inline float sum(F x) {
  const __m256 h = _mm256_add_ps(x.a, x.b);
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}
static inline float greatest(F x) {
  const __m256 h = _mm256_max_ps(x.a, x.b);
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps(d, d, 1)));
}

static inline __m256 widen_bf16(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
static inline F load_bf16(const uint16_t* p) {
  return {widen_bf16(_mm_loadu_si128((const __m128i*)p)),
          widen_bf16(_mm_loadu_si128((const __m128i*)(p + 8)))};
}
static inline __m256i round_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  return _mm256_srli_epi32(up, 16);
}
static inline void store_bf16(uint16_t* p, F x) {
  const __m256i packed = _mm256_packus_epi32(round_bf16(x.a), round_bf16(x.b));
  _mm256_storeu_si256((__m256i*)p, _mm256_permute4x64_epi64(packed, 0xd8));
}
static inline F load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)),
          _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 8)))};
}

static inline I load_i(const void* p) {
  const __m256i* q = (const __m256i*)p;
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
static inline void store_i(void* p, I x) {
  _mm256_storeu_si256((__m256i*)p, x.a), _mm256_storeu_si256((__m256i*)p + 1, x.b);
}
static inline I set1_i(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
static inline I set4(const void* p) {
  int32_t x;
  std::memcpy(&x, p, 4);
  return set1_i(x);
}
static inline F to_f32(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
static inline I round_i(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
static inline int32_t sum_i(I x) {
  const __m256i h = _mm256_add_epi32(x.a, x.b);
  const __m128i q = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  const __m128i d = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
}
static inline void store_i8(int8_t* p, I x) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
  _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(low, high));
}
static inline I low_nibbles(I x) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
}
static inline I high_nibbles(I x) {
  return low_nibbles({_mm256_srli_epi16(x.a, 4), _mm256_srli_epi16(x.b, 4)});
}
static inline I sub_i8(I x, I y) {
  return {_mm256_sub_epi8(x.a, y.a), _mm256_sub_epi8(x.b, y.b)};
}
template <int J>
static inline I byte_of(I x) {
  const __m256i mask = _mm256_set1_epi32(255);
  return {_mm256_and_si256(_mm256_srli_epi32(x.a, 8 * J), mask),
          _mm256_and_si256(_mm256_srli_epi32(x.b, 8 * J), mask)};
}
static inline F bf16_low(I x) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(x.a, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(x.b, 16))};
}
static inline F bf16_high(I x) {
  const __m256i mask = _mm256_set1_epi32(int(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(x.a, mask)),
          _mm256_castsi256_ps(_mm256_and_si256(x.b, mask))};
}

template <bool Wide>
static inline __m256i dot4(__m256i acc, __m256i w, __m256i x) {
  if (Wide) {  // (w - 128) * x as |w - 128| * (+-x): pairs stay within 2 * 128 * 127
    const __m256i s = _mm256_xor_si256(w, _mm256_set1_epi8(char(0x80)));
    x = _mm256_sign_epi8(x, s);
    w = _mm256_abs_epi8(s);
  }
  const __m256i pairs = _mm256_maddubs_epi16(w, x);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template <bool Wide>
static inline I dot4(I acc, I w, I x) {
  return {dot4<Wide>(acc.a, w.a, x.a), dot4<Wide>(acc.b, w.b, x.b)};
}
static inline F dot2_bf16(F acc, I w, I x) {
  return fma(bf16_high(w), bf16_high(x), fma(bf16_low(w), bf16_low(x), acc));
}

}  // namespace ES_ISA
}  // namespace edgeserve

// vec.h on AVX-512 (F, BW, VL, DQ), with VNNI and BF16 where the build has them.
#pragma once

#include <immintrin.h>

namespace edgeserve {
namespace ES_ISA {

struct F {
  __m512 v;
};
struct I {
  __m512i v;
};

constexpr int kMaxRows = 8;
constexpr int kPanelRows = 6;
constexpr int kPanelTiles = 2;
#ifdef __AVX512VNNI__
constexpr int kWideBias = 0;
#else
constexpr int kWideBias = 128;
#endif

static inline __mmask16 first(int n) { return __mmask16((1u << n) - 1); }

static inline F load(const float* p) { return {_mm512_loadu_ps(p)}; }
static inline void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
static inline F load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
static inline void store_n(float* p, F a, int n) { _mm512_mask_storeu_ps(p, first(n), a.v); }
static inline F set1(float x) { return {_mm512_set1_ps(x)}; }
static inline F add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
static inline F sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
static inline F mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
static inline F div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
static inline F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
static inline F max(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
static inline F min(F a, F b) { return {_mm512_min_ps(a.v, b.v)}; }
static inline F abs(F a) { return {_mm512_abs_ps(a.v)}; }
static inline F sqrt(F a) { return {_mm512_sqrt_ps(a.v)}; }
static inline F round(F a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
static inline F keep_below(F a, int n, float other) {
  return {_mm512_mask_blend_ps(first(n), _mm512_set1_ps(other), a.v)};
}
static inline F keep_from(F a, int n, float other) {
  return {_mm512_mask_blend_ps(first(n), a.v, _mm512_set1_ps(other))};
}
static inline F zero_below(F a, F x, F limit) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_NLT_UQ), a.v)};
}
static inline F power_of_two(F n) {
  const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(e, 23))};
}

static inline float sum(F a) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}
static inline float greatest(F a) { return _mm512_reduce_max_ps(a.v); }

static inline F load_bf16(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
static inline void store_bf16(uint16_t* p, F a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
}
static inline F load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p))};
}

static inline I load_i(const void* p) { return {_mm512_loadu_si512(p)}; }
static inline void store_i(void* p, I a) { _mm512_storeu_si512(p, a.v); }
static inline I set1_i(int32_t x) { return {_mm512_set1_epi32(x)}; }
static inline I set4(const void* p) {
  int32_t x;
  std::memcpy(&x, p, 4);
  return {_mm512_set1_epi32(x)};
}
static inline F to_f32(I a) { return {_mm512_cvtepi32_ps(a.v)}; }
static inline I round_i(F a) { return {_mm512_cvtps_epi32(a.v)}; }
static inline int32_t sum_i(I a) { return _mm512_reduce_add_epi32(a.v); }
static inline void store_i8(int8_t* p, I a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(a.v)); }
static inline I low_nibbles(I a) { return {_mm512_and_si512(a.v, _mm512_set1_epi8(15))}; }
static inline I high_nibbles(I a) {
  return {_mm512_and_si512(_mm512_srli_epi16(a.v, 4), _mm512_set1_epi8(15))};
}
static inline I sub_i8(I a, I b) { return {_mm512_sub_epi8(a.v, b.v)}; }
template <int J>
static inline I byte_of(I a) {
  return {_mm512_and_si512(_mm512_srli_epi32(a.v, 8 * J), _mm512_set1_epi32(255))};
}
static inline F bf16_low(I a) { return {_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16))}; }
static inline F bf16_high(I a) {
  return {_mm512_castsi512_ps(_mm512_and_si512(a.v, _mm512_set1_epi32(int(0xffff0000u))))};
}

template <bool Wide>
static inline I dot4(I acc, I w, I x) {
#ifdef __AVX512VNNI__
  return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)};
#else
  if (Wide) {  // (w - 128) * x as |w - 128| * (+-x): pairs stay within 2 * 128 * 127
    const __m512i s = _mm512_xor_si512(w.v, _mm512_set1_epi8(char(0x80)));
    const __mmask64 negative = _mm512_movepi8_mask(s);
    x.v = _mm512_mask_sub_epi8(x.v, negative, _mm512_setzero_si512(), x.v);
    w.v = _mm512_abs_epi8(s);
  }
  const __m512i pairs = _mm512_maddubs_epi16(w.v, x.v);
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
#endif
}
static inline F dot2_bf16(F acc, I w, I x) {
#ifdef __AVX512BF16__
  return {_mm512_dpbf16_ps(acc.v, (__m512bh)w.v, (__m512bh)x.v)};
#else
  return fma(bf16_high(w), bf16_high(x), fma(bf16_low(w), bf16_low(x), acc));
#endif
}

}  // namespace ES_ISA
}  // namespace edgeserve

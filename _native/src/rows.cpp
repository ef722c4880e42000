#include "edgeserve/rows.h"

#include <cfloat>
#include <cmath>
#include <cstring>

// 32-byte vectors are split in two where a machine has no AVX; the lanes and their order stay the
// same, so the results do too.
#pragma GCC diagnostic ignored "-Wpsabi"
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define ES_WIDE __attribute__((target_clones("default", "avx2")))
#else
#define ES_WIDE
#endif
#define ES_INLINE inline __attribute__((always_inline))

namespace edgeserve {

namespace {

typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef float HalfFloats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(32)));

constexpr int32_t kLanes = 8;
constexpr int32_t kHalf = 4;

template <typename Vector>
ES_INLINE Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

ES_INLINE Floats spread(float value) { return value - Floats{}; }

// exp(x) for x <= 0 by Cody-Waite reduction and a polynomial of degree 7; 0 below -87.
ES_INLINE Floats exp_floats(Floats x) {
  const Ints tiny = x < spread(-87.0f);
  x = tiny ? spread(-87.0f) : x;
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const Floats n = (x * 1.44269504f + magic) - magic;
  const Floats r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats p = spread(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
  Floats scale;
  std::memcpy(&scale, &power, sizeof scale);
  return tiny ? Floats{} : p * scale;
}

// exp(x) for x <= 0 to about 1e-14; 0 below -700.
ES_INLINE Doubles exp_doubles(Doubles x) {
  const Doubles lowest = -700.0 - Doubles{};
  const Longs tiny = x < lowest;
  x = tiny ? lowest : x;
  const double magic = 6755399441055744.0;  // 1.5 * 2^52
  const Doubles rounded = x * 1.4426950408889634 + magic;
  const Doubles n = rounded - magic;
  const Doubles r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  Doubles p = 1.0 / 39916800 - Doubles{};
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  Longs bits;
  std::memcpy(&bits, &rounded, sizeof bits);  // the integer stands in the low bits
  const Longs power = (bits + 1023) << 52;
  Doubles scale;
  std::memcpy(&scale, &power, sizeof scale);
  return tiny ? Doubles{} : p * scale;
}

ES_INLINE double sum_of(Floats x) {
  return ((static_cast<double>(x[0]) + x[1]) + (static_cast<double>(x[2]) + x[3])) +
         ((static_cast<double>(x[4]) + x[5]) + (static_cast<double>(x[6]) + x[7]));
}

}  // namespace

ES_WIDE float row_max(const float* logits, int32_t count, bool& bad) {
  const Floats largest = spread(FLT_MAX);
  Floats highest = spread(-INFINITY);
  Ints good_lanes = ~Ints{};
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats x = load<Floats>(logits + i);
    good_lanes &= x <= largest;  // false for NaN and +inf
    highest = x > highest ? x : highest;
  }
  float best = -INFINITY;
  bool good = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    best = highest[lane] > best ? highest[lane] : best;
    good = good && good_lanes[lane];
  }
  for (; i < count; ++i) {
    good = good && logits[i] <= FLT_MAX;
    best = logits[i] > best ? logits[i] : best;
  }
  bad = !good;
  return best;
}

ES_WIDE int32_t row_find(const float* logits, int32_t count, float value) {
  const Floats wanted = spread(value);
  int32_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const Ints hit = (load<Floats>(logits + i) == wanted) |
                     (load<Floats>(logits + i + kLanes) == wanted);
    const Longs any = reinterpret_cast<Longs>(hit);
    if (any[0] | any[1] | any[2] | any[3]) break;
  }
  for (; i < count; ++i) {
    if (logits[i] == value) return i;
  }
  return -1;
}

ES_WIDE double row_weights(const float* logits, int32_t count, float max, float scale,
                           float* weights, double* sums) {
  double total = 0;
  for (int32_t start = 0; start < count; start += kBlock) {
    const int32_t stop = start + kBlock < count ? start + kBlock : count;
    Floats sum{};
    int32_t i = start;
    for (; i + kLanes <= stop; i += kLanes) {
      const Floats weight = exp_floats((load<Floats>(logits + i) - max) * scale);
      std::memcpy(weights + i, &weight, sizeof weight);
      sum += weight;
    }
    double block = sum_of(sum);
    for (; i < stop; ++i) {
      weights[i] = weight_of(logits[i], max, scale);
      block += weights[i];
    }
    sums[start / kBlock] = block;
    total += block;
  }
  return total;
}

ES_WIDE double row_log_sum_exp(const float* logits, int32_t count, float max) {
  const double top = max;
  Doubles sum{};
  int32_t i = 0;
  for (; i + kHalf <= count; i += kHalf) {
    sum += exp_doubles(__builtin_convertvector(load<HalfFloats>(logits + i), Doubles) - top);
  }
  Doubles rest = -INFINITY - Doubles{};
  for (int lane = 0; i + lane < count; ++lane) rest[lane] = logits[i + lane] - top;
  sum += exp_doubles(rest);
  return top + std::log((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

float weight_of(float logit, float max, float scale) {
  return exp_floats(spread((logit - max) * scale))[0];
}

}  // namespace edgeserve

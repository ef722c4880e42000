#include "edgeserve/rows.h"

#include <cfloat>
#include <cmath>
#include <cstring>

namespace edgeserve {

namespace {

typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
typedef int64_t Longs __attribute__((vector_size(16)));

constexpr int32_t kLanes = 4;

inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store(float* to, Floats value) { std::memcpy(to, &value, sizeof value); }

inline Floats spread(float value) { return Floats{value, value, value, value}; }

// exp(x) for x <= 0 by Cody-Waite reduction and a polynomial of degree 7; 0 below -87.
inline Floats exp_floats(Floats x) {
  const Ints tiny = x < spread(-87.0f);
  x = tiny ? spread(-87.0f) : x;
  const Floats magic = spread(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Floats rounded = x * spread(1.44269504f) + magic;
  const Floats n = rounded - magic;
  const Floats r = (x - n * spread(0.693359375f)) - n * spread(-2.12194440e-4f);
  Floats p = spread(1.0f / 5040);
  p = p * r + spread(1.0f / 720);
  p = p * r + spread(1.0f / 120);
  p = p * r + spread(1.0f / 24);
  p = p * r + spread(1.0f / 6);
  p = p * r + spread(0.5f);
  p = p * r + spread(1.0f);
  p = p * r + spread(1.0f);
  const Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
  Floats scale;
  std::memcpy(&scale, &power, sizeof scale);
  return tiny ? spread(0.0f) : p * scale;
}

constexpr double kReciprocals[] = {1.0 / 13, 1.0 / 12, 1.0 / 11, 1.0 / 10, 1.0 / 9, 1.0 / 8, 1.0 / 7,
                                   1.0 / 6,  1.0 / 5,  1.0 / 4,  1.0 / 3,  1.0 / 2, 1.0};

// exp(x) for x <= 0 to about 1e-15; 0 below -700.
inline Doubles exp_doubles(Doubles x) {
  const Doubles lowest = {-700.0, -700.0};
  const Longs tiny = x < lowest;
  x = tiny ? lowest : x;
  const Doubles magic = {6755399441055744.0, 6755399441055744.0};  // 1.5 * 2^52
  const Doubles rounded = x * 1.4426950408889634 + magic;
  const Doubles n = rounded - magic;
  const Doubles r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  Doubles p = {1.0, 1.0};
  for (const double reciprocal : kReciprocals) p = p * (r * reciprocal) + 1.0;
  Longs bits;
  std::memcpy(&bits, &rounded, sizeof bits);  // the integer stands in the low bits
  const Longs power = (bits + 1023) << 52;
  Doubles scale;
  std::memcpy(&scale, &power, sizeof scale);
  const Doubles zero = {0.0, 0.0};
  return tiny ? zero : p * scale;
}

inline double exp_sum(Floats x, float max) {
  const Doubles low = {static_cast<double>(x[0]) - max, static_cast<double>(x[1]) - max};
  const Doubles high = {static_cast<double>(x[2]) - max, static_cast<double>(x[3]) - max};
  const Doubles sum = exp_doubles(low) + exp_doubles(high);
  return sum[0] + sum[1];
}

}  // namespace

float row_max(const float* logits, int32_t count, bool& bad) {
  const Floats largest = spread(FLT_MAX);
  Floats best0 = spread(-INFINITY), best1 = best0;
  Ints good0 = {-1, -1, -1, -1}, good1 = good0;
  int32_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const Floats x0 = load(logits + i), x1 = load(logits + i + kLanes);
    good0 &= x0 <= largest;  // false for NaN and +inf
    good1 &= x1 <= largest;
    best0 = x0 > best0 ? x0 : best0;
    best1 = x1 > best1 ? x1 : best1;
  }
  best0 = best1 > best0 ? best1 : best0;
  good0 &= good1;
  float best = -INFINITY;
  bool good = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    best = best0[lane] > best ? best0[lane] : best;
    good = good && good0[lane];
  }
  for (; i < count; ++i) {
    good = good && logits[i] <= FLT_MAX;
    best = logits[i] > best ? logits[i] : best;
  }
  bad = !good;
  return best;
}

int32_t row_find(const float* logits, int32_t count, float value) {
  const Floats wanted = spread(value);
  int32_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    const Ints hit = (load(logits + i) == wanted) | (load(logits + i + kLanes) == wanted) |
                     (load(logits + i + 2 * kLanes) == wanted) |
                     (load(logits + i + 3 * kLanes) == wanted);
    const Longs any = reinterpret_cast<Longs>(hit);
    if (any[0] | any[1]) break;
  }
  for (; i < count; ++i) {
    if (logits[i] == value) return i;
  }
  return -1;
}

double row_weights(const float* logits, int32_t count, float max, float scale, float* weights,
                   double* sums) {
  const Floats top = spread(max), factor = spread(scale);
  double total = 0;
  for (int32_t start = 0; start < count; start += kBlock) {
    const int32_t stop = start + kBlock < count ? start + kBlock : count;
    Floats sum = spread(0.0f);
    int32_t i = start;
    for (; i + kLanes <= stop; i += kLanes) {
      const Floats weight = exp_floats((load(logits + i) - top) * factor);
      store(weights + i, weight);
      sum += weight;
    }
    double block = (static_cast<double>(sum[0]) + sum[1]) + (static_cast<double>(sum[2]) + sum[3]);
    for (; i < stop; ++i) {
      weights[i] = weight_of(logits[i], max, scale);
      block += weights[i];
    }
    sums[start / kBlock] = block;
    total += block;
  }
  return total;
}

double row_log_sum_exp(const float* logits, int32_t count, float max) {
  double total = 0;
  int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) total += exp_sum(load(logits + i), max);
  if (i < count) {
    Floats rest = spread(-INFINITY);
    for (int lane = 0; i + lane < count; ++lane) rest[lane] = logits[i + lane];
    total += exp_sum(rest, max);
  }
  return max + std::log(total);
}

float weight_of(float logit, float max, float scale) {
  return exp_floats(spread((logit - max) * scale))[0];
}

}  // namespace edgeserve

// Passes over one row of logits: the same bits on every machine and in every build.
//
// Eight lanes on any machine, a fixed order of additions, no contraction.
#pragma once

#include <cstdint>

namespace edgeserve {

constexpr int32_t kBlock = 64;  // logits summed together; also what is skipped together

constexpr int32_t blocks_of(int32_t count) { return (count + kBlock - 1) / kBlock; }

// The highest logit. Sets `bad` when a logit is NaN or +inf; -inf is a forbidden token.
float row_max(const float* logits, int32_t count, bool& bad);
// The lowest index of `value`, or -1.
int32_t row_find(const float* logits, int32_t count, float value);
// weights[i] = exp((logits[i] - max) * scale), 0 below exp(-87); sums[b] over block b. Returns the
// total. Relative error 2e-7.
double row_weights(const float* logits, int32_t count, float max, float scale, float* weights,
                   double* sums);
// log(sum(exp(logits))) in double.
double row_log_sum_exp(const float* logits, int32_t count, float max);
// The same exponential for one logit.
float weight_of(float logit, float max, float scale);

}  // namespace edgeserve

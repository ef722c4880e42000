#include "edgeserve/oracle.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace edgeserve {

namespace {

uint64_t mix(uint64_t value) {  // the finaliser of splitmix64
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

}  // namespace

HashForward::HashForward(ForwardShape shape, int64_t step_us, int64_t fault_after)
    : ShapedForward(shape),
      slots_(static_cast<size_t>(shape.pages) * shape.page_tokens, 0xdead),
      step_us_(step_us),
      fault_after_(fault_after) {}

uint64_t& HashForward::slot(const Span& span, int32_t position) {
  const int32_t page = span.pages[position / shape_.page_tokens];
  if (page < 0 || page >= shape_.pages) throw std::runtime_error("a page id is out of range");
  return slots_[static_cast<size_t>(page) * shape_.page_tokens + position % shape_.page_tokens];
}

void HashForward::run(const Step& step) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(step_us_);
  if (fault_after_ >= 0 && steps_ >= fault_after_) throw std::runtime_error("the test fault");
  ++steps_;
  max_tokens_ = std::max<int64_t>(max_tokens_, step.tokens);
  // As a backend does: all keys and values are written, then every position reads its past.
  int32_t base = 0;
  for (int32_t s = 0; s < step.span_count; ++s) {
    const Span& span = step.spans[s];
    for (int32_t i = 0; i < span.count; ++i) {
      const uint64_t id = static_cast<uint32_t>(step.ids[base + i]);
      slot(span, span.start + i) = mix(id * kGolden + span.start + i + 1);
    }
    base += span.count;
  }
  base = 0;
  int32_t output = 0;
  for (int32_t s = 0; s < step.span_count; ++s) {
    const Span& span = step.spans[s];
    uint64_t state = 0;
    for (int32_t position = 0; position < span.start + span.count; ++position) {
      state = (state ^ slot(span, position)) * kGolden;
      if (output == step.output_count ||
          step.outputs[output] != base + position - span.start || position < span.start) {
        continue;
      }
      float* row = step.logits + static_cast<int64_t>(output) * shape_.vocab;
      for (int32_t id = 0; id < shape_.vocab; ++id) {
        row[id] = static_cast<float>(mix(state + (id + 1) * kGolden) >> 40) * 0x1p-21f;  // [0, 8)
      }
      ++output;
    }
    base += span.count;
  }
  if (step_us_ > 0) std::this_thread::sleep_until(until);
}

void HashForward::copy_page(int32_t from, int32_t to) {
  ++copies_;
  std::copy_n(slots_.begin() + static_cast<int64_t>(from) * shape_.page_tokens, shape_.page_tokens,
              slots_.begin() + static_cast<int64_t>(to) * shape_.page_tokens);
}

}  // namespace edgeserve

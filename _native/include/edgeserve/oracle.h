// Networks behind the core's interface that are not a backend: a callback, and a test double.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "edgeserve/forward.h"

namespace edgeserve {

struct ForwardShape {
  int32_t vocab;
  int32_t page_tokens;
  int32_t pages;
  int32_t step_tokens;
};

// What both share: the numbers.
class ShapedForward : public Forward {
 public:
  explicit ShapedForward(ForwardShape shape) : shape_(shape) {
    if (shape.vocab < 1 || shape.page_tokens < 1 || shape.pages < 1 || shape.step_tokens < 1) {
      throw std::invalid_argument("vocab, page_tokens, pages and step_tokens are at least 1");
    }
  }
  int32_t vocab() const override { return shape_.vocab; }
  int32_t page_tokens() const override { return shape_.page_tokens; }
  int32_t pages() const override { return shape_.pages; }
  int32_t step_tokens() const override { return shape_.step_tokens; }

 protected:
  const ForwardShape shape_;
};

// Runs a function with a context: 0 is success, anything else a fault that the context explains.
class CallbackForward : public ShapedForward {
 public:
  using Run = int (*)(void* context, const Step* step);
  using Copy = int (*)(void* context, int32_t from, int32_t to);

  CallbackForward(ForwardShape shape, void* context, Run run, Copy copy)
      : ShapedForward(shape), context_(context), run_(run), copy_(copy) {}

  void run(const Step& step) override {
    if (run_(context_, &step) != 0) throw std::runtime_error("the callback raised an exception");
  }
  void copy_page(int32_t from, int32_t to) override {
    if (copy_(context_, from, to) != 0) throw std::runtime_error("the callback raised an exception");
  }

 private:
  void* context_;
  Run run_;
  Copy copy_;
};

// Logits are a hash of all token ids up to a position, read back from the pages it is told of: a
// wrong page, a page written too late or shared too long gives other tokens.
class HashForward : public ShapedForward {
 public:
  HashForward(ForwardShape shape, int64_t step_us, int64_t fault_after);

  void run(const Step& step) override;
  void copy_page(int32_t from, int32_t to) override;

  int64_t steps() const { return steps_; }
  int64_t max_tokens() const { return max_tokens_; }
  int64_t copies() const { return copies_; }

 private:
  uint64_t& slot(const Span& span, int32_t position);

  std::vector<uint64_t> slots_;  // [pages, page_tokens]: a hash of token and position
  const int64_t step_us_;        // least duration of a step
  const int64_t fault_after_;    // steps until one throws; negative is never
  int64_t steps_ = 0;
  int64_t max_tokens_ = 0;
  int64_t copies_ = 0;
};

}  // namespace edgeserve

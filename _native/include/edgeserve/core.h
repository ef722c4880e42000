// Runs steps: tokens through the network, sampling, text into the ring, until the next decision.
//
// Owned by the engine thread; only `interrupt` may be called from another. Works on sequences that
// its caller keeps alive, from `run` to the `sample` that may follow.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edgeserve/forward.h"
#include "edgeserve/pages.h"
#include "edgeserve/ring.h"
#include "edgeserve/sampler.h"
#include "edgeserve/sequence.h"

namespace edgeserve {

enum class Reason : int32_t { STEP, FINISHED, INTERRUPTED, PAGES, LOGITS, HORIZON };

struct Outcome {
  int32_t steps = 0;
  int32_t tokens = 0;   // computed
  int32_t sampled = 0;  // tokens generated, forced ones among them
  Reason reason = Reason::STEP;
};

struct Work {
  Sequence* sequence;
  int32_t count;  // pending tokens to compute in the first step
};

class Core {
 public:
  Core(Forward& forward, PagePool& pool, Ring& ring, int32_t max_rows);

  // Throws std::invalid_argument for work that is not well formed, and what the network throws;
  // after the latter the core is broken and throws at each call.
  Outcome run(std::vector<Work> work, int32_t horizon);
  Outcome sample();
  // One sequence (null: all) leaves the step that waits, and computes its last token again later.
  void drop(const Sequence* sequence);
  // Ids that the sequence generates next. Appended at once where they can be; returns how many.
  int32_t force(Sequence& sequence, const std::vector<int32_t>& ids);
  // The row of a sequence that waits. Throws std::invalid_argument when it does not.
  float* logits(const Sequence* sequence);
  void interrupt() { interrupted_.store(true, std::memory_order_release); }
  bool is_broken() const { return !fault_.empty(); }
  int32_t vocab() const { return vocab_; }

 private:
  struct Row {
    Sequence* sequence;
    float* logits;
    int32_t saved;  // row in saved_ with the raw logits, or -1
  };
  struct Output {
    Sequence* sequence;
    int32_t position;  // whose logits these are
  };

  void check(const std::vector<Work>& work, int32_t horizon) const;
  void check_ready() const;
  void check_ids(const std::vector<int32_t>& ids) const;
  bool reserve(const std::vector<Work>& work);
  void compute(const std::vector<Work>& work);
  void add_span(Sequence& sequence, int32_t count);
  void run_forward();
  void compute_prompts(std::vector<Work>& work, Outcome& outcome);
  void take_outputs();
  bool must_wait() const;
  void save_rows();
  bool sample_rows(Outcome& outcome);
  int32_t sample_row(const Row& row);
  int32_t append_forced(Sequence& sequence);
  bool count_pending(std::vector<Work>& work) const;
  bool settle(bool finished, bool all_sampled, int32_t horizon, Outcome& outcome) const;
  template <typename Action>
  void guard(Action action);

  Forward& forward_;
  PagePool& pool_;
  Ring& ring_;
  const int32_t max_rows_;
  const int32_t vocab_;
  const int32_t output_rows_;  // rows in logits_
  Sampler sampler_;
  std::unique_ptr<float[]> logits_;  // [output_rows, vocab]
  std::vector<float> raw_;           // [vocab] before the sampler changes a row
  std::vector<float> saved_;         // [rows, vocab] before a hook changes them
  std::vector<Row> rows_;            // computed, not sampled yet
  bool waiting_ = false;             // rows_ wait for sample()
  std::vector<int32_t> ids_;
  std::vector<Span> spans_;
  std::vector<int32_t> outputs_;
  std::vector<Output> owners_;  // of outputs_
  std::atomic<bool> interrupted_{false};
  std::string fault_;  // what broke the core
};

}  // namespace edgeserve

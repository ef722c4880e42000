#include "edgeserve/core.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_set>

namespace edgeserve {

namespace {

constexpr int32_t kPromptSlice = 64;  // rows of prompt logits computed at a time

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

}  // namespace

Core::Core(Forward& forward, PagePool& pool, Ring& ring, int32_t max_rows)
    : forward_(forward),
      pool_(pool),
      ring_(ring),
      max_rows_(max_rows),
      vocab_(forward.vocab()),
      output_rows_(std::max(max_rows, kPromptSlice)),
      sampler_(vocab_) {
  require(max_rows >= 1, "max_rows is at least 1");
  require(pool.size() <= forward.pages(), "the pool has more pages than the network's storage");
  logits_.reset(new float[static_cast<size_t>(output_rows_) * vocab_]);
}

// What the network throws breaks the core for good.
template <typename Action>
void Core::guard(Action action) {
  try {
    action();
  } catch (const std::exception& error) {
    fault_ = *error.what() ? error.what() : "unknown fault";
    throw;
  } catch (...) {
    fault_ = "unknown fault";
    throw;
  }
}

void Core::check_ready() const {
  if (is_broken()) throw std::runtime_error("the core is broken: " + fault_);
}

void Core::check_ids(const std::vector<int32_t>& ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_) {
      throw std::out_of_range("a forced id is beyond the network's vocabulary");
    }
  }
}

void Core::check(const std::vector<Work>& work, int32_t horizon) const {
  check_ready();
  require(!waiting_, "a step waits for sample()");
  require(horizon >= 1, "the horizon is at least 1 step");
  require(!work.empty(), "a step has at least 1 sequence");
  require(static_cast<int32_t>(work.size()) <= max_rows_, "more sequences than max_rows");
  std::unordered_set<const Sequence*> seen;
  int64_t tokens = 0;
  for (const auto& [sequence, count] : work) {
    require(seen.insert(sequence).second, "a sequence stands twice in a step");
    require(&sequence->pool() == &pool_, "a sequence belongs to another pool");
    require(sequence->finish() == GOING, "a sequence has finished");
    check_ids(sequence->settings().reasoning.closing);
    require(count >= 1 && count <= sequence->pending(),
            "a count is from 1 to the sequence's pending tokens");
    const int32_t* first = sequence->tokens().data() + sequence->computed();
    if (*std::max_element(first, first + count) >= vocab_) {
      throw std::out_of_range("a token id is beyond the network's vocabulary");
    }
    tokens += count;
  }
  require(tokens <= forward_.step_tokens(), "more tokens than a step takes");
}

Outcome Core::run(std::vector<Work> work, int32_t horizon) {
  check(work, horizon);
  Outcome outcome;
  do {
    if (!reserve(work)) {
      outcome.reason = Reason::PAGES;
      return outcome;
    }
    compute_prompts(work, outcome);
    compute(work);
    for (const Work& item : work) outcome.tokens += item.count;
    ++outcome.steps;
    take_outputs();
    if (must_wait()) {
      save_rows();
      waiting_ = true;
      outcome.reason = Reason::LOGITS;
      break;
    }
    const bool all_sampled = rows_.size() == work.size();
    if (settle(sample_rows(outcome), all_sampled, horizon, outcome)) break;
    if (!count_pending(work)) {
      outcome.reason = Reason::STEP;
      break;
    }
  } while (true);
  interrupted_.store(false, std::memory_order_relaxed);
  return outcome;
}

// Whether a decision is due after a step, and which.
bool Core::settle(bool finished, bool all_sampled, int32_t horizon, Outcome& outcome) const {
  const bool interrupted = interrupted_.load(std::memory_order_acquire);
  outcome.reason = finished       ? Reason::FINISHED
                   : !all_sampled ? Reason::STEP
                   : interrupted  ? Reason::INTERRUPTED
                                  : Reason::HORIZON;
  return outcome.reason != Reason::HORIZON || outcome.steps >= horizon;
}

// Each decodes on: with its one token, and those that were forced after it. Returns whether they
// fit in a step.
bool Core::count_pending(std::vector<Work>& work) const {
  int64_t tokens = 0;
  for (Work& item : work) {
    item.count = item.sequence->pending();
    tokens += item.count;
  }
  return tokens <= forward_.step_tokens();
}

// All pages of the step, or none.
bool Core::reserve(const std::vector<Work>& work) {
  // Of two that write to one shared page only the first copies it; counting both is a page too many
  // at most, for one step.
  int64_t needed = 0;
  for (const auto& [sequence, count] : work) needed += sequence->pages_for(count);
  if (needed == 0) return true;
  if (needed > pool_.available()) return false;
  for (const auto& [sequence, count] : work) {
    const auto [from, to] = sequence->take_pages(count);
    if (from >= 0) guard([&, from = from, to = to] { forward_.copy_page(from, to); });
  }
  return true;
}

void Core::add_span(Sequence& sequence, int32_t count) {
  const int32_t start = sequence.computed();
  const int32_t base = static_cast<int32_t>(ids_.size());
  const int32_t* first = sequence.tokens().data() + start;
  ids_.insert(ids_.end(), first, first + count);
  spans_.push_back({start, count, sequence.pages().data()});
  const bool prompts = sequence.wants_prompt_logprobs();
  for (int32_t position = prompts ? start : start + count - 1; position < start + count;
       ++position) {
    const bool is_last = position + 1 == sequence.length();
    const bool is_prompt = prompts && position >= sequence.prompt_done() &&
                           position + 1 < sequence.prompt_length();
    if (!is_last && !is_prompt) continue;
    outputs_.push_back(base + position - start);
    owners_.push_back({&sequence, position});
  }
}

void Core::compute(const std::vector<Work>& work) {
  ids_.clear();
  spans_.clear();
  outputs_.clear();
  owners_.clear();
  for (const auto& [sequence, count] : work) add_span(*sequence, count);
  run_forward();
  for (const auto& [sequence, count] : work) sequence->set_computed(sequence->computed() + count);
}

void Core::run_forward() {
  const Step step{ids_.data(),
                  static_cast<int32_t>(ids_.size()),
                  spans_.data(),
                  static_cast<int32_t>(spans_.size()),
                  outputs_.data(),
                  static_cast<int32_t>(outputs_.size()),
                  logits_.get()};
  guard([&] { forward_.run(step); });
}

// Prompts whose logprobs are wanted go ahead in slices, all but the last token of their chunk, so
// that their rows of logits never exceed the buffer.
void Core::compute_prompts(std::vector<Work>& work, Outcome& outcome) {
  for (Work& item : work) {
    while (item.sequence->wants_prompt_logprobs() && item.count > 1) {
      const int32_t count = std::min(item.count - 1, kPromptSlice);
      compute({{item.sequence, count}});
      take_outputs();
      item.count -= count;
      outcome.tokens += count;
    }
  }
}

// Logits of prompt positions become logprobs; those of last positions become rows to sample.
void Core::take_outputs() {
  for (size_t i = 0; i < owners_.size(); ++i) {
    const auto [sequence, position] = owners_[i];
    float* row = logits_.get() + i * vocab_;
    if (position + 1 == sequence->length()) {
      rows_.push_back({sequence, row, -1});
      continue;
    }
    guard([&, sequence = sequence, position = position] {
      sequence->add_prompt_logprob(sampler_.logprob(row, sequence->tokens()[position + 1],
                                                    sequence->settings().prompt_logprobs));
    });
  }
}

bool Core::must_wait() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [](const Row& row) { return row.sequence->waits(); });
}

// A hook writes into the row; logprobs come from what stood there before.
void Core::save_rows() {
  saved_.clear();
  for (Row& row : rows_) {
    const SequenceSettings& settings = row.sequence->settings();
    if (!settings.hook || settings.logprobs < 0) continue;
    row.saved = static_cast<int32_t>(saved_.size() / vocab_);
    saved_.insert(saved_.end(), row.logits, row.logits + vocab_);
  }
}

Outcome Core::sample() {
  check_ready();
  require(waiting_, "no step waits for sample()");
  for (const Row& row : rows_) require(!row.sequence->lacks_mask(), "a sequence lacks its mask");
  waiting_ = false;
  Outcome outcome;
  outcome.reason = sample_rows(outcome) ? Reason::FINISHED : Reason::STEP;
  return outcome;
}

bool Core::sample_rows(Outcome& outcome) {
  bool finished = false;
  for (const Row& row : rows_) {
    outcome.sampled += sample_row(row);
    finished = finished || row.sequence->finish() != GOING;
  }
  rows_.clear();
  return finished;
}

int32_t Core::sample_row(const Row& row) {
  Sequence& sequence = *row.sequence;
  Piece prompt;
  if (sequence.report_prompt(prompt)) ring_.write(std::move(prompt));
  const Draft draft = sequence.draft();
  const bool logprobs = sequence.settings().logprobs >= 0;
  const float* raw = row.saved >= 0 ? saved_.data() + static_cast<size_t>(row.saved) * vocab_
                                    : row.logits;
  if (logprobs && row.saved < 0 && Sampler::edits(draft)) {
    raw_.assign(row.logits, row.logits + vocab_);
    raw = raw_.data();
  }
  int32_t token = sequence.forced() > 0 ? sequence.take_forced() : -1;
  const bool chooses = token < 0;
  Piece piece;
  guard([&] {
    try {
      if (chooses) token = sampler_.choose(draft, row.logits);
    } catch (const BadLogits&) {
      if (!sequence.settings().hook) throw;  // a hook's own fault ends its sequence alone
    }
    if (token >= 0 && logprobs) {
      piece.logprobs.push_back(sampler_.logprob(raw, token, sequence.settings().logprobs));
    }
  });
  sequence.advance(token, piece);
  ring_.write(std::move(piece));
  return 1 + append_forced(sequence);
}

// What is forced after a token follows at once, unless its logprob is wanted: that needs a row.
int32_t Core::append_forced(Sequence& sequence) {
  int32_t count = 0;
  while (sequence.forced() > 0 && sequence.finish() == GOING && sequence.settings().logprobs < 0) {
    Piece piece;
    sequence.advance(sequence.take_forced(), piece);
    ring_.write(std::move(piece));
    ++count;
  }
  return count;
}

int32_t Core::force(Sequence& sequence, const std::vector<int32_t>& ids) {
  check_ready();
  check_ids(ids);
  require(&sequence.pool() == &pool_, "a sequence belongs to another pool");
  require(sequence.finish() == GOING, "a sequence has finished");
  sequence.force(ids);
  const bool waits = waiting_ && std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
                       return row.sequence == &sequence;
                     });
  // Before its first token it may still be forked, and in a step that waits it has a row.
  return waits || sequence.generated() == 0 ? 0 : append_forced(sequence);
}

void Core::drop(const Sequence* sequence) {
  require(waiting_, "no step waits for sample()");
  const auto leaves = [&](const Row& row) {
    if (sequence != nullptr && row.sequence != sequence) return false;
    if (row.sequence->computed() > 0) row.sequence->set_computed(row.sequence->computed() - 1);
    return true;
  };
  rows_.erase(std::remove_if(rows_.begin(), rows_.end(), leaves), rows_.end());
  waiting_ = !rows_.empty();
}

float* Core::logits(const Sequence* sequence) {
  for (const Row& row : rows_) {
    if (waiting_ && row.sequence == sequence) return row.logits;
  }
  throw std::invalid_argument("the sequence waits for no sampling");
}

}  // namespace edgeserve

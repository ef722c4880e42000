// One choice of one request: its tokens, pages, settings and the state of its text.
//
// Owned by the engine thread. Holds a reference in the pool for each of its pages. Whoever owns a
// Sequence keeps its vocabulary and pool alive.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "edgeserve/pages.h"
#include "edgeserve/prefix.h"
#include "edgeserve/reasoning.h"
#include "edgeserve/ring.h"
#include "edgeserve/sampler.h"
#include "edgeserve/text.h"

namespace edgeserve {

// Why a choice ended; generation.Finish in Python, and FAILED: no token was allowed.
enum Finish : int32_t { GOING = 0, STOP = 1, LENGTH = 2, FAILED = 3 };

struct SequenceSettings {
  SamplerSettings sampler;
  TextSettings text;
  ReasoningSettings reasoning;
  int32_t max_tokens = 0;
  int32_t max_length = 0;  // prompt and generated tokens
  std::vector<int32_t> eos_ids;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  int32_t logprobs = -1;         // alternatives per generated token; -1 is off
  int32_t prompt_logprobs = -1;  // the same for prompt tokens
  bool hook = false;             // Python changes each row of logits
  std::string salt;
};

class Sequence {
 public:
  // Throws std::invalid_argument for a setting out of range.
  Sequence(int64_t id, int32_t choice, std::vector<int32_t> prompt, const Vocabulary& vocabulary,
           PagePool& pool, int32_t page_tokens, SequenceSettings settings);
  ~Sequence() { release(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  int64_t id() const { return id_; }
  int32_t choice() const { return choice_; }
  int32_t length() const { return static_cast<int32_t>(tokens_.size()); }
  int32_t prompt_length() const { return prompt_length_; }
  int32_t generated() const { return length() - prompt_length_; }
  int32_t computed() const { return computed_; }
  int32_t pending() const { return length() - computed_; }
  Finish finish() const { return finish_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::vector<int32_t>& pages() const { return pages_; }
  const SequenceSettings& settings() const { return settings_; }
  const PagePool& pool() const { return pool_; }

  // Pages to take for `count` more tokens: new ones, and one to copy a shared one that is written.
  int32_t pages_for(int32_t count) const;
  // Takes them. Returns the page to copy and its copy, or -1 and -1.
  std::pair<int32_t, int32_t> take_pages(int32_t count);
  void set_computed(int32_t computed) { computed_ = computed; }

  int32_t adopt(PrefixTree& tree, int32_t limit);
  int32_t publish(PrefixTree& tree, int32_t tokens) const;
  Sequence* fork(int64_t id, int32_t choice) const;
  void release();

  // A constraint of the answer waits for the end of reasoning, and so does the end of the choice.
  bool constraint_rests() const {
    return reasoning_.phase() == REASONING && !settings_.reasoning.constrained;
  }
  // Whether the constraint holds for the next token.
  bool needs_mask() const { return constrained && forced_.empty() && !constraint_rests(); }
  // Position of the first token that the constraint speaks of; the length while that is to come.
  int32_t constraint_start() const {
    if (settings_.reasoning.constrained) return prompt_length_;
    return constraint_rests() ? length() : reasoning_.since();
  }
  bool lacks_mask() const { return needs_mask() && mask_.empty(); }
  // Whether sampling has to wait for Python: a hook, or a mask that is due.
  bool waits() const { return (settings_.hook && forced_.empty()) || lacks_mask(); }
  void set_mask(const uint32_t* words, int32_t count) { mask_.assign(words, words + count); }
  Draft draft() const;
  const Reasoning& reasoning() const { return reasoning_; }

  // Ids that come next whatever the network says, after those that are forced already.
  void force(const std::vector<int32_t>& ids) {
    forced_.insert(forced_.end(), ids.begin(), ids.end());
  }
  int32_t forced() const { return static_cast<int32_t>(forced_.size()); }
  int32_t take_forced();
  // The token that was chosen, or -1 when none was allowed: what it means for text, phase and
  // finish.
  void advance(int32_t token, Piece& piece);

  // Logprobs of prompt tokens from the second on, in order, until all are there.
  bool wants_prompt_logprobs() const {
    return settings_.prompt_logprobs >= 0 && !prompt_reported_;
  }
  int32_t prompt_done() const { return static_cast<int32_t>(prompt_logprobs_.size()); }
  void add_prompt_logprob(TokenLogprob&& logprob) { prompt_logprobs_.push_back(std::move(logprob)); }
  bool report_prompt(Piece& piece);

  bool constrained = false;  // each token needs a mask

 private:
  void end(Finish finish, TextStream::Gain& gain, Piece& piece);
  Finish judge(int32_t token, TextStream::Gain& gain, Piece& piece);
  bool is_armed() const;
  void force_closing();

  const int64_t id_;
  const int32_t choice_;
  const int32_t prompt_length_;
  const Vocabulary& vocabulary_;
  PagePool& pool_;
  const int32_t page_tokens_;
  const SequenceSettings settings_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> pages_;  // page i holds positions [i * page_tokens, (i + 1) * page_tokens)
  int32_t computed_ = 0;
  Finish finish_ = GOING;
  Penalties penalties_;
  TextStream text_;
  Reasoning reasoning_;
  std::deque<int32_t> forced_;
  std::vector<uint32_t> mask_;  // for the next token alone
  std::vector<TokenLogprob> prompt_logprobs_;
  bool prompt_reported_ = false;
};

}  // namespace edgeserve

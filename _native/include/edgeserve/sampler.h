// How the next token is chosen from a row of logits.
//
// Steps in order: bias, bad words and suppressed ids, min tokens, mask, repetition, frequency and
// presence penalties, temperature, top_k, typical_p, top_p, min_p, draw. Each filter sees the
// renormalised survivors of the one before. What is chosen depends on the row, the settings, the
// tokens so far, seed, choice and position; on nothing else. Logprobs come from the raw row.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace edgeserve {

struct SamplerSettings {
  double temperature = 1.0;
  int32_t top_k = 0;  // 0 is off
  double top_p = 1.0;
  double min_p = 0.0;
  double typical_p = 1.0;
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  std::vector<std::pair<int32_t, float>> bias;
  std::vector<std::vector<int32_t>> bad_words;
  std::vector<int32_t> suppress_ids;  // never chosen
  std::vector<int32_t> end_ids;       // not chosen before min_tokens, nor while a draft goes on
  int32_t min_tokens = 0;
  uint64_t seed = 0;

  void check() const;  // throws std::invalid_argument
  bool is_greedy() const { return temperature < 1e-6; }
  bool has_penalties() const {
    return repetition_penalty != 1.0 || frequency_penalty != 0.0 || presence_penalty != 0.0;
  }
};

// How often each token was seen: repetition counts prompt and generated tokens, frequency and
// presence generated ones alone. Kept only when a penalty is set.
class Penalties {
 public:
  void note_prompt(int32_t token) { seen_[token]; }
  void note_generated(int32_t token) { ++seen_[token]; }
  void apply(const SamplerSettings& settings, float* logits, int32_t vocab) const;

 private:
  std::unordered_map<int32_t, int32_t> seen_;  // token to times generated
};

// What a choice depends on beside the row.
struct Draft {
  const SamplerSettings& settings;
  const Penalties& penalties;
  const std::vector<int32_t>& tokens;  // prompt and generated
  int32_t generated;
  int32_t choice;
  const uint32_t* mask;  // bit i allows id i; null allows all
  int32_t mask_words;
  bool goes_on = false;  // end_ids are not chosen
};

struct TokenLogprob {
  int32_t token;
  double logprob;
  std::vector<std::pair<int32_t, double>> top;  // best first, ties by id
};

// A row with NaN or +inf.
class BadLogits : public std::runtime_error {
 public:
  BadLogits() : std::runtime_error("the network returned logits that are not finite") {}
};

class Sampler {
 public:
  explicit Sampler(int32_t vocab);

  // The chosen id, or -1 when the settings leave none. Changes the row. Throws BadLogits.
  int32_t choose(const Draft& draft, float* logits);
  // Whether `choose` will change the row.
  static bool edits(const Draft& draft);
  // Log-softmax of `token` and of the `top` best. Throws BadLogits.
  TokenLogprob logprob(const float* logits, int32_t token, int32_t top) const;

 private:
  struct Candidate {
    float logit;
    int32_t id;
    float weight;  // exp((logit - highest) / temperature)
  };

  struct Place {
    double value;
    int32_t index;  // of the candidate
    float weight;
  };

  void edit(const Draft& draft, float* logits) const;
  bool narrow(const SamplerSettings& settings, const float* logits, float max, float scale);
  int32_t draw_all(double total, double uniform) const;
  int32_t draw_candidate(double uniform) const;
  void take_top_k(const float* logits, int32_t k, float max, float scale);
  void take_above(const float* logits, float least);
  void take_nucleus(const float* logits, double total, double top_p);
  void keep_least(double target);
  void keep_typical(double typical_p);
  void keep_nucleus(double top_p);
  void keep_min_p(double min_p);
  double candidate_total() const;

  const int32_t vocab_;
  std::vector<float> weights_;         // [vocab]
  std::vector<double> sums_;           // [blocks of vocab]
  std::vector<Candidate> candidates_;  // by id
  double rest_ = 0;                    // weight that is in no candidate and counts for top_p
  std::vector<double> values_;         // [candidates] what keep_least goes by
  std::vector<Place> places_;          // [candidates]
};

}  // namespace edgeserve

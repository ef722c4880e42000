#include "edgeserve/sampler.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "edgeserve/philox.h"
#include "edgeserve/rows.h"

namespace edgeserve {

namespace {

constexpr float kForbidden = -INFINITY;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void forbid(float* logits, int32_t vocab, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab) logits[id] = kForbidden;
  }
}

// The last token of a word is forbidden where the tokens so far end with all before it.
void forbid_words(const Draft& draft, float* logits, int32_t vocab) {
  const std::vector<int32_t>& tokens = draft.tokens;
  for (const std::vector<int32_t>& word : draft.settings.bad_words) {
    const size_t before = word.size() - 1;
    if (before > tokens.size() || word.back() >= vocab) continue;
    if (std::equal(word.begin(), word.end() - 1, tokens.end() - before)) {
      logits[word.back()] = kForbidden;
    }
  }
}

void apply_mask(const Draft& draft, float* logits, int32_t vocab) {
  for (int32_t start = 0; start < vocab; start += 32) {
    const uint32_t word = start / 32 < draft.mask_words ? draft.mask[start / 32] : 0;
    if (word == 0xffffffffu) continue;
    const int32_t stop = std::min(start + 32, vocab);
    for (int32_t id = start; id < stop; ++id) {
      if (!(word >> (id - start) & 1)) logits[id] = kForbidden;
    }
  }
}

}  // namespace

void SamplerSettings::check() const {
  require(std::isfinite(temperature) && temperature >= 0, "temperature is not negative");
  require(top_k >= 0, "top_k is not negative");
  require(top_p > 0 && top_p <= 1, "top_p is above 0 and at most 1");
  require(min_p >= 0 && min_p <= 1, "min_p is from 0 to 1");
  require(typical_p > 0 && typical_p <= 1, "typical_p is above 0 and at most 1");
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0,
          "repetition_penalty is above 0");
  require(std::isfinite(frequency_penalty), "frequency_penalty is finite");
  require(std::isfinite(presence_penalty), "presence_penalty is finite");
  require(min_tokens >= 0, "min_tokens is not negative");
  for (const auto& [id, value] : bias) {
    require(id >= 0 && std::isfinite(value), "logit_bias has ids from 0 and finite values");
  }
  for (const std::vector<int32_t>& word : bad_words) {
    require(!word.empty(), "a bad word has at least one token");
    require(*std::min_element(word.begin(), word.end()) >= 0, "a bad word has ids from 0");
  }
}

void Penalties::apply(const SamplerSettings& settings, float* logits, int32_t vocab) const {
  const float repetition = static_cast<float>(settings.repetition_penalty);
  for (const auto& [token, times] : seen_) {
    if (token >= vocab) continue;
    float logit = logits[token];
    logit = logit > 0 ? logit / repetition : logit * repetition;
    if (times > 0) {
      logit -= static_cast<float>(settings.frequency_penalty * times + settings.presence_penalty);
    }
    logits[token] = logit;
  }
}

Sampler::Sampler(int32_t vocab) : vocab_(vocab), weights_(vocab), sums_(blocks_of(vocab)) {}

bool Sampler::edits(const Draft& draft) {
  const SamplerSettings& settings = draft.settings;
  return !settings.bias.empty() || !settings.bad_words.empty() || !settings.suppress_ids.empty() ||
         (draft.generated < settings.min_tokens && !settings.end_ids.empty()) ||
         draft.mask != nullptr || settings.has_penalties();
}

void Sampler::edit(const Draft& draft, float* logits) const {
  const SamplerSettings& settings = draft.settings;
  for (const auto& [id, value] : settings.bias) {
    if (id < vocab_) logits[id] += value;
  }
  forbid(logits, vocab_, settings.suppress_ids);
  if (!settings.bad_words.empty()) forbid_words(draft, logits, vocab_);
  if (draft.generated < settings.min_tokens) forbid(logits, vocab_, settings.end_ids);
  if (draft.mask != nullptr) apply_mask(draft, logits, vocab_);
  if (settings.has_penalties()) draft.penalties.apply(settings, logits, vocab_);
}

int32_t Sampler::choose(const Draft& draft, float* logits) {
  const SamplerSettings& settings = draft.settings;
  bool bad = false;
  float max = row_max(logits, vocab_, bad);
  if (bad) throw BadLogits();
  if (edits(draft)) {
    edit(draft, logits);
    max = row_max(logits, vocab_, bad);
  }
  if (bad || max == kForbidden) return -1;  // a bias beyond all floats also leaves no choice
  if (settings.is_greedy()) return row_find(logits, vocab_, max);
  const double random = uniform(settings.seed, draft.choice,
                                static_cast<int32_t>(draft.tokens.size()), Draw::TOKEN);
  // Never 0: a forbidden token's -inf would become NaN.
  const float scale = std::max(static_cast<float>(1.0 / settings.temperature), FLT_MIN);
  double total = 0;
  if (settings.top_k > 0 && settings.top_k < vocab_) {
    take_top_k(logits, settings.top_k, max, scale);
    total = candidate_total();
  } else {
    total = row_weights(logits, vocab_, max, scale, weights_.data(), sums_.data());
    if (settings.typical_p < 1) {
      take_above(logits, 0);
      sort_candidates();
    } else if (settings.top_p < 1) {
      take_nucleus(logits, total, settings.top_p);
    } else if (settings.min_p > 0) {
      take_above(logits, static_cast<float>(settings.min_p));
      sort_candidates();
    } else {
      return draw_all(total, random);
    }
  }
  if (settings.typical_p < 1) {
    keep_typical(settings.typical_p);
    total = candidate_total();
  }
  if (settings.top_p < 1) keep_nucleus(settings.top_p * total);
  if (settings.min_p > 0) keep_min_p(settings.min_p);
  return draw_candidate(random);
}

// The id under which `uniform` of the total weight falls, walking ids upwards, a block at a time.
int32_t Sampler::draw_all(double total, double uniform) const {
  const double target = uniform * total;
  double below = 0;
  int32_t chosen = 0;   // block
  double before = 0;    // weight below it
  for (int32_t block = 0; block < static_cast<int32_t>(sums_.size()); ++block) {
    if (sums_[block] > 0) {  // the last such block is what rounding at the very end falls back to
      chosen = block;
      before = below;
    }
    below += sums_[block];
    if (target < below) break;
  }
  const int32_t stop = std::min((chosen + 1) * kBlock, vocab_);
  int32_t last = -1;
  for (int32_t id = chosen * kBlock; id < stop; ++id) {
    if (weights_[id] <= 0) continue;
    last = id;
    before += weights_[id];
    if (target < before) break;
  }
  return last;
}

int32_t Sampler::draw_candidate(double uniform) const {
  const double target = uniform * candidate_total();
  double below = 0;
  int32_t last = candidates_.front().id;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight <= 0) continue;
    last = candidate.id;
    below += candidate.weight;
    if (target < below) return last;
  }
  return last;
}

double Sampler::candidate_total() const {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

void Sampler::sort_candidates() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  });
}

// The k highest logits, ties by id: a heap whose front is the worst kept; blocks without a better
// logit are skipped.
void Sampler::take_top_k(const float* logits, int32_t k, float max, float scale) {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  candidates_.clear();
  int32_t id = 0;
  for (; id < k; ++id) candidates_.push_back({logits[id], id, 0});
  std::make_heap(candidates_.begin(), candidates_.end(), better);
  while (id < vocab_) {
    const int32_t stop = std::min(id + kBlock, vocab_);
    bool bad = false;
    const bool skip = row_max(logits + id, stop - id, bad) <= candidates_.front().logit;
    for (; !skip && id < stop; ++id) {
      if (logits[id] <= candidates_.front().logit) continue;
      std::pop_heap(candidates_.begin(), candidates_.end(), better);
      candidates_.back() = {logits[id], id, 0};
      std::push_heap(candidates_.begin(), candidates_.end(), better);
    }
    id = stop;
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), better);
  for (Candidate& candidate : candidates_) {
    candidate.weight = weight_of(candidate.logit, max, scale);
  }
}

// Every id whose weight is at least `least` and above 0, by id.
void Sampler::take_above(const float* logits, float least) {
  candidates_.clear();
  for (int32_t start = 0; start < vocab_; start += kBlock) {
    if (sums_[start / kBlock] < static_cast<double>(least) * 0.999) continue;
    const int32_t stop = std::min(start + kBlock, vocab_);
    for (int32_t id = start; id < stop; ++id) {
      if (weights_[id] >= least && weights_[id] > 0) {
        candidates_.push_back({logits[id], id, weights_[id]});
      }
    }
  }
}

// Enough of the highest weights to hold `top_p` of the total: a lower bar until they do.
void Sampler::take_nucleus(const float* logits, double total, double top_p) {
  for (float least = 0x1p-6f; least > 0x1p-60f; least *= 0x1p-6f) {
    take_above(logits, least);
    if (candidate_total() >= top_p * total * (1 + 1e-9)) break;
    candidates_.clear();
  }
  if (candidates_.empty()) take_above(logits, 0);
  sort_candidates();
}

// The candidates whose surprise is nearest to the entropy, until they hold `typical_p`.
void Sampler::keep_typical(double typical_p) {
  const double total = candidate_total();
  const double log_total = std::log(total);
  double entropy = 0;
  struct Distance {
    double value;
    int32_t index;
  };
  std::vector<Distance> distances;
  distances.reserve(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].weight <= 0) break;  // sorted: all others are 0 as well
    const double surprise = log_total - std::log(static_cast<double>(candidates_[i].weight));
    entropy += candidates_[i].weight / total * surprise;
    distances.push_back({surprise, static_cast<int32_t>(i)});
  }
  for (Distance& distance : distances) distance.value = std::fabs(distance.value - entropy);
  std::sort(distances.begin(), distances.end(), [](const Distance& a, const Distance& b) {
    return a.value < b.value || (a.value == b.value && a.index < b.index);
  });
  std::vector<Candidate> kept;
  double mass = 0;
  for (const Distance& distance : distances) {
    kept.push_back(candidates_[distance.index]);
    mass += kept.back().weight;
    if (mass >= typical_p * total) break;
  }
  candidates_.swap(kept);
  sort_candidates();
}

// The shortest run of the best candidates whose weight reaches `target`.
void Sampler::keep_nucleus(double target) {
  double mass = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    mass += candidates_[i].weight;
    if (mass >= target) {
      candidates_.resize(i + 1);
      return;
    }
  }
}

void Sampler::keep_min_p(double min_p) {
  const float least = static_cast<float>(min_p) * candidates_.front().weight;
  const auto end = std::find_if(candidates_.begin() + 1, candidates_.end(),
                                [&](const Candidate& c) { return c.weight < least; });
  candidates_.erase(end, candidates_.end());
}

TokenLogprob Sampler::logprob(const float* logits, int32_t token, int32_t top) const {
  bool bad = false;
  const float max = row_max(logits, vocab_, bad);
  if (bad || max == kForbidden) throw BadLogits();
  const double log_sum = row_log_sum_exp(logits, vocab_, max);
  TokenLogprob result{token, logits[token] - log_sum, {}};
  const auto better = [](const std::pair<float, int32_t>& a, const std::pair<float, int32_t>& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  std::vector<std::pair<float, int32_t>> best;
  for (int32_t id = 0; id < vocab_ && top > 0; ++id) {
    if (static_cast<int32_t>(best.size()) == std::min(top, vocab_)) {
      if (logits[id] <= best.back().first) continue;
      best.pop_back();
    }
    const std::pair<float, int32_t> entry{logits[id], id};
    best.insert(std::upper_bound(best.begin(), best.end(), entry, better), entry);
  }
  for (const auto& [logit, id] : best) result.top.emplace_back(id, logit - log_sum);
  return result;
}

}  // namespace edgeserve

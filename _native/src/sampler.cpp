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

bool forbids_end(const Draft& draft) {
  return draft.goes_on || draft.generated < draft.settings.min_tokens;
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
         (forbids_end(draft) && !settings.end_ids.empty()) ||
         draft.mask != nullptr || settings.has_penalties();
}

void Sampler::edit(const Draft& draft, float* logits) const {
  const SamplerSettings& settings = draft.settings;
  for (const auto& [id, value] : settings.bias) {
    if (id < vocab_) logits[id] += value;
  }
  forbid(logits, vocab_, settings.suppress_ids);
  if (!settings.bad_words.empty()) forbid_words(draft, logits, vocab_);
  if (forbids_end(draft)) forbid(logits, vocab_, settings.end_ids);
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
  if (!narrow(settings, logits, max, scale)) {
    return draw_all(row_weights(logits, vocab_, max, scale, weights_.data(), sums_.data()), random);
  }
  if (settings.typical_p < 1) keep_typical(settings.typical_p);
  if (settings.top_p < 1) keep_nucleus(settings.top_p);
  if (settings.min_p > 0) keep_min_p(settings.min_p);
  return draw_candidate(random);
}

// Makes `candidates_` from the row, and applies the first filter where that saves work. Returns
// false when no filter is set.
bool Sampler::narrow(const SamplerSettings& settings, const float* logits, float max, float scale) {
  if (settings.top_k > 0 && settings.top_k < vocab_) {
    take_top_k(logits, settings.top_k, max, scale);
    return true;
  }
  const bool any = settings.typical_p < 1 || settings.top_p < 1 || settings.min_p > 0;
  if (!any) return false;
  const double total = row_weights(logits, vocab_, max, scale, weights_.data(), sums_.data());
  rest_ = 0;
  if (settings.typical_p < 1) {
    take_above(logits, 0);
  } else if (settings.top_p < 1) {
    take_nucleus(logits, total, settings.top_p);
  } else {
    take_above(logits, static_cast<float>(settings.min_p));
  }
  return true;
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
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  for (Candidate& candidate : candidates_) {
    candidate.weight = weight_of(candidate.logit, max, scale);
  }
  rest_ = 0;
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

// Enough of the highest weights to hold `top_p` of the total: a lower bar until they do. What is
// left out counts as `rest_`.
void Sampler::take_nucleus(const float* logits, double total, double top_p) {
  for (float least = 0x1p-6f; least > 0x1p-60f; least *= 0x1p-6f) {
    take_above(logits, least);
    const double held = candidate_total();
    if (held < top_p * total * (1 + 1e-9)) continue;
    rest_ = total - held;
    return;
  }
  take_above(logits, 0);
}

// Keeps the candidates of least value, ties by id, until their weights reach `target`: a quickselect
// by weight, so that only a few are ever sorted. Those kept stay in the order of their ids.
void Sampler::keep_least(double target) {
  const auto before = [](const Place& a, const Place& b) {
    return a.value < b.value || (a.value == b.value && a.index < b.index);
  };
  places_.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(candidates_.size()); ++i) {
    places_.push_back({values_[i], i, candidates_[i].weight});
  }
  const auto begin = places_.begin();
  size_t low = 0, high = places_.size();
  double mass = 0;  // of places below `low`
  while (high - low > 32) {
    const size_t middle = (low + high) / 2;
    std::nth_element(begin + low, begin + middle, begin + high, before);
    double left = 0;
    for (size_t i = low; i <= middle; ++i) left += places_[i].weight;
    if (mass + left >= target) {
      high = middle + 1;
    } else {
      mass += left;
      low = middle + 1;
    }
  }
  std::sort(begin + low, begin + high, before);
  size_t last = low;
  while (last + 1 < high && (mass += places_[last].weight) < target) ++last;
  const Place cut = places_[std::min(last, high - 1)];
  size_t kept = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (before(cut, {values_[i], static_cast<int32_t>(i), 0})) continue;
    candidates_[kept++] = candidates_[i];
  }
  candidates_.resize(kept);
}

// The candidates whose surprise is nearest to the entropy, until they hold `typical_p`.
void Sampler::keep_typical(double typical_p) {
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                   [](const Candidate& c) { return c.weight <= 0; }),
                    candidates_.end());
  const double total = candidate_total();
  const double log_total = std::log(total);
  double entropy = 0;
  values_.clear();
  for (const Candidate& candidate : candidates_) {
    const double surprise = log_total - std::log(static_cast<double>(candidate.weight));
    entropy += candidate.weight / total * surprise;
    values_.push_back(surprise);
  }
  for (double& value : values_) value = std::fabs(value - entropy);
  keep_least(typical_p * total);
  rest_ = 0;
}

// The highest logits until they hold `top_p`.
void Sampler::keep_nucleus(double top_p) {
  values_.clear();
  for (const Candidate& candidate : candidates_) values_.push_back(-candidate.logit);
  keep_least(top_p * (candidate_total() + rest_));
}

void Sampler::keep_min_p(double min_p) {
  float best = 0;
  for (const Candidate& candidate : candidates_) best = std::max(best, candidate.weight);
  const float least = static_cast<float>(min_p) * best;
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                   [&](const Candidate& c) { return c.weight < least; }),
                    candidates_.end());
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

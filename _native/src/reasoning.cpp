#include "edgeserve/reasoning.h"

#include <algorithm>
#include <stdexcept>

namespace edgeserve {

namespace {

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void check_ids(const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) require(id >= 0, "ids of reasoning are not negative");
}

}  // namespace

void ReasoningSettings::check() const {
  require(budget >= -1, "a reasoning budget is not negative");
  require(budget < 0 || !closing.empty(), "a reasoning budget needs closing ids");
  for (const auto* markers : {&end_markers, &start_markers}) {
    for (const std::vector<int32_t>& marker : *markers) {
      require(!marker.empty(), "a marker has at least one id");
      check_ids(marker);
    }
  }
  check_ids(closing);
}

Reasoning::Reasoning(const ReasoningSettings& settings, int32_t prompt)
    : settings_(settings), phase_(settings.starts_inside ? REASONING : CONTENT), since_(prompt) {}

bool Reasoning::note(const std::vector<int32_t>& tokens, bool may_start) {
  bool ended;
  if (phase_ == REASONING) {
    ++tokens_;
    ended = ends_reasoning(tokens);
  } else {
    ended = may_start && ends_with(tokens, settings_.start_markers);
  }
  if (!ended) return false;
  phase_ = phase_ == REASONING ? CONTENT : REASONING;
  since_ = static_cast<int32_t>(tokens.size());
  return true;
}

bool Reasoning::ends_reasoning(const std::vector<int32_t>& tokens) {
  if (closing_left_ > 0) return --closing_left_ == 0;
  return ends_with(tokens, settings_.end_markers);
}

bool Reasoning::take_closing() {
  if (phase_ != REASONING || closing_left_ > 0) return false;
  if (settings_.budget < 0 || tokens_ < settings_.budget) return false;
  closing_left_ = static_cast<int32_t>(settings_.closing.size());
  return true;
}

// A marker lies in its phase as a whole.
bool Reasoning::ends_with(const std::vector<int32_t>& tokens,
                          const std::vector<std::vector<int32_t>>& markers) const {
  const size_t inside = tokens.size() - since_;
  return std::any_of(markers.begin(), markers.end(), [&](const std::vector<int32_t>& marker) {
    return marker.size() <= inside && std::equal(marker.begin(), marker.end(),
                                                 tokens.end() - marker.size());
  });
}

}  // namespace edgeserve

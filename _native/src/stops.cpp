#include "edgeserve/stops.h"

#include <stdexcept>

namespace edgeserve {

Stops::Stops(std::vector<std::string> strings) : strings_(std::move(strings)), states_(1) {
  for (int32_t index = 0; index < static_cast<int32_t>(strings_.size()); ++index) insert(index);
  link();
}

int32_t Stops::child(int32_t state, uint8_t byte) const {
  for (const auto& [label, target] : states_[state].children) {
    if (label == byte) return target;
  }
  return -1;
}

void Stops::insert(int32_t index) {
  const std::string& string = strings_[index];
  if (string.empty()) throw std::invalid_argument("a stop string is not empty");
  int32_t state = 0;
  for (const char letter : string) {
    const uint8_t byte = static_cast<uint8_t>(letter);
    int32_t target = child(state, byte);
    if (target < 0) {
      target = static_cast<int32_t>(states_.size());
      states_.emplace_back();
      states_[target].depth = states_[state].depth + 1;
      states_[state].children.emplace_back(byte, target);
    }
    state = target;
  }
  if (states_[state].match < 0) states_[state].match = index;
}

// Breadth first: a state's fail link is shorter than itself, and done before it.
void Stops::link() {
  std::vector<int32_t> order{0};
  for (size_t at = 0; at < order.size(); ++at) {
    const int32_t state = order[at];
    for (const auto& [byte, target] : states_[state].children) {
      states_[target].fail = state == 0 ? 0 : next(states_[state].fail, byte);
      order.push_back(target);
    }
    State& here = states_[state];
    if (here.match < 0 && state != 0) here.match = states_[here.fail].match;
    here.live = here.children.empty() ? states_[here.fail].live : here.depth;
  }
}

int32_t Stops::next(int32_t state, uint8_t byte) const {
  while (true) {
    const int32_t target = child(state, byte);
    if (target >= 0) return target;
    if (state == 0) return 0;
    state = states_[state].fail;
  }
}

}  // namespace edgeserve

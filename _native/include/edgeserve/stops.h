// Aho-Corasick over bytes: which stop string ends here, and how much could still become one.
//
// Immutable; shared by the choices of a request. States are ints; the root is 0.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace edgeserve {

class Stops {
 public:
  // Throws std::invalid_argument for an empty string.
  explicit Stops(std::vector<std::string> strings);

  bool empty() const { return strings_.empty(); }
  int32_t next(int32_t state, uint8_t byte) const;
  // The longest stop string that ends in this state, or -1.
  int32_t match(int32_t state) const { return states_[state].match; }
  // Bytes at the end of the text that a longer stop string could begin with.
  int32_t live(int32_t state) const { return states_[state].live; }
  const std::string& string(int32_t index) const { return strings_[index]; }

 private:
  struct State {
    std::vector<std::pair<uint8_t, int32_t>> children;
    int32_t depth = 0;
    int32_t fail = 0;
    int32_t match = -1;
    int32_t live = 0;
  };

  int32_t child(int32_t state, uint8_t byte) const;
  void insert(int32_t index);
  void link();

  std::vector<std::string> strings_;
  std::vector<State> states_;
};

}  // namespace edgeserve

// The bytes of each token id, and which ids are special. Immutable; shared by all sequences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace edgeserve {

class Vocabulary {
 public:
  // For building only: pieces in the order of their ids, then the special ids.
  void add(const char* bytes, int64_t count) {
    bytes_.append(bytes, count);
    starts_.push_back(static_cast<int64_t>(bytes_.size()));
    special_.push_back(0);
  }
  void set_special(int32_t id) { special_.at(id) = 1; }

  int32_t size() const { return static_cast<int32_t>(special_.size()); }
  // Empty for an id beyond: padding of the logits has no text.
  std::string_view piece(int32_t id) const {
    if (id < 0 || id >= size()) return {};
    return std::string_view(bytes_).substr(starts_[id], starts_[id + 1] - starts_[id]);
  }
  bool is_special(int32_t id) const { return id >= 0 && id < size() && special_[id]; }

 private:
  std::string bytes_;
  std::vector<int64_t> starts_{0};  // [size + 1]
  std::vector<uint8_t> special_;    // [size]
};

}  // namespace edgeserve

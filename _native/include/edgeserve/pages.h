// Which pages of a backend's storage are free, and how many count on the others.
//
// Owned by the engine thread. Sequences and the prefix tree hold references; a page is free again
// after the last of them. Knows nothing of what is in a page.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

namespace edgeserve {

// Too few free pages. A MemoryError in Python.
class PagesShort : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "too few free pages"; }
};

class PagePool {
 public:
  explicit PagePool(int32_t pages);

  int32_t size() const { return static_cast<int32_t>(references_.size()); }
  int32_t available() const { return static_cast<int32_t>(free_.size()); }
  // Pages that only the prefix tree holds.
  int32_t reclaimable() const { return reclaimable_; }

  // Fills `pages` with ids, each held once. Throws PagesShort, and takes none, when too few are free.
  void take(int32_t count, int32_t* pages);
  int32_t take();
  void hold(int32_t page);
  // Returns whether the page became free.
  bool give(int32_t page);
  int32_t references(int32_t page) const;
  // One of the references is the prefix tree's.
  void set_cached(int32_t page, bool cached);
  // Throws std::runtime_error unless the books agree.
  void check() const;

 private:
  int32_t& taken(int32_t page);
  bool is_reclaimable(int32_t page) const { return cached_[page] && references_[page] == 1; }

  std::vector<int32_t> free_;        // a stack
  std::vector<int32_t> references_;  // [pages]; 0 is free
  std::vector<uint8_t> cached_;      // [pages]
  int32_t reclaimable_ = 0;
};

}  // namespace edgeserve

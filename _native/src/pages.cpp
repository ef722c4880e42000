#include "edgeserve/pages.h"

#include <stdexcept>
#include <string>

namespace edgeserve {

PagePool::PagePool(int32_t pages) {
  if (pages < 1) throw std::invalid_argument("a pool has at least 1 page");
  references_.assign(pages, 0);
  cached_.assign(pages, 0);
  free_.reserve(pages);
  for (int32_t page = pages; page-- > 0;) free_.push_back(page);
}

void PagePool::take(int32_t count, int32_t* pages) {
  if (count < 0) throw std::invalid_argument("a count of pages is not negative");
  if (count > available()) throw PagesShort();
  for (int32_t i = 0; i < count; ++i) pages[i] = take();
}

int32_t PagePool::take() {
  if (free_.empty()) throw PagesShort();
  const int32_t page = free_.back();
  free_.pop_back();
  references_[page] = 1;
  return page;
}

void PagePool::hold(int32_t page) {
  int32_t& references = taken(page);
  reclaimable_ -= is_reclaimable(page);
  ++references;
}

bool PagePool::give(int32_t page) {
  int32_t& references = taken(page);
  reclaimable_ -= is_reclaimable(page);
  --references;
  reclaimable_ += is_reclaimable(page);
  if (references == 0) free_.push_back(page);
  return references == 0;
}

int32_t PagePool::references(int32_t page) const {
  if (page < 0 || page >= size()) throw std::out_of_range("no page " + std::to_string(page));
  return references_[page];
}

void PagePool::set_cached(int32_t page, bool cached) {
  taken(page);
  reclaimable_ -= is_reclaimable(page);
  cached_[page] = cached;
  reclaimable_ += is_reclaimable(page);
}

int32_t& PagePool::taken(int32_t page) {
  if (references(page) == 0) {
    throw std::invalid_argument("page " + std::to_string(page) + " is free");
  }
  return references_[page];
}

void PagePool::check() const {
  std::vector<uint8_t> seen(references_.size(), 0);
  for (const int32_t page : free_) {
    if (page < 0 || page >= size()) throw std::runtime_error("a free page is out of range");
    if (seen[page]++) throw std::runtime_error("page " + std::to_string(page) + " is free twice");
  }
  int32_t reclaimable = 0;
  for (int32_t page = 0; page < size(); ++page) {
    if ((references_[page] == 0) != (seen[page] == 1) || references_[page] < 0) {
      throw std::runtime_error("page " + std::to_string(page) + " is neither free nor taken");
    }
    if (references_[page] == 0 && cached_[page]) {
      throw std::runtime_error("page " + std::to_string(page) + " is free and cached");
    }
    reclaimable += is_reclaimable(page);
  }
  if (reclaimable != reclaimable_) throw std::runtime_error("reclaimable pages are miscounted");
}

}  // namespace edgeserve

#include "edgeserve/prefix.h"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace edgeserve {

namespace {

uint64_t mix(uint64_t value) {  // the finaliser of splitmix64
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// Of the tree's own, so that no client can prepare tokens that collide.
uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

PrefixTree::PrefixTree(PagePool& pool, int32_t page_tokens, int64_t max_records, int64_t max_pages)
    : pool_(pool),
      page_tokens_(page_tokens),
      max_records_(max_records),
      max_pages_(max_pages),
      seed_(random_seed()) {
  if (page_tokens < 1) throw std::invalid_argument("a page has at least 1 token");
}

PrefixTree::~PrefixTree() { clear(); }

uint64_t PrefixTree::hash_page(const Node& parent, const int32_t* tokens) const {
  uint64_t hash = mix(seed_ ^ parent.id);
  for (int32_t i = 0; i < page_tokens_; ++i) {
    hash = mix(hash ^ static_cast<uint32_t>(tokens[i])) + 0x9e3779b97f4a7c15ULL;
  }
  return hash;
}

PrefixTree::Node* PrefixTree::find_child(const Node& parent, const int32_t* tokens) const {
  const auto [first, last] = nodes_.equal_range(hash_page(parent, tokens));
  for (auto at = first; at != last; ++at) {
    Node* node = at->second.get();
    if (node->parent == &parent && std::equal(node->tokens.begin(), node->tokens.end(), tokens)) {
      return node;
    }
  }
  return nullptr;
}

std::vector<PrefixTree::Node*> PrefixTree::walk(const int32_t* tokens, int32_t pages,
                                                const std::string& salt) {
  std::vector<Node*> path;
  const auto at = roots_.find(salt);
  if (at == roots_.end()) return path;
  Node* node = at->second.get();
  for (int32_t i = 0; i < pages; ++i) {
    node = find_child(*node, tokens + static_cast<int64_t>(i) * page_tokens_);
    if (node == nullptr) break;
    path.push_back(node);
  }
  for (Node* found : path) touch(*found);
  return path;
}

PrefixTree::Node& PrefixTree::root(const std::string& salt) {
  std::unique_ptr<Node>& root = roots_[salt];
  if (!root) {
    root = std::make_unique<Node>();
    root->id = ++last_id_;
    root->salt = salt;
  }
  return *root;
}

int32_t PrefixTree::match(const int32_t* tokens, int32_t count, const std::string& salt) {
  if (count < 1) return 0;
  return static_cast<int32_t>(walk(tokens, (count - 1) / page_tokens_, salt).size()) * page_tokens_;
}

int32_t PrefixTree::adopt(const int32_t* tokens, int32_t count, const std::string& salt,
                          std::vector<int32_t>& pages) {
  ++stats_.lookups;
  stats_.looked_up_tokens += count;
  if (count < 1) return 0;
  const std::vector<Node*> path = walk(tokens, (count - 1) / page_tokens_, salt);
  for (const Node* node : path) {
    pool_.hold(node->page);
    pages.push_back(node->page);
  }
  const int32_t matched = static_cast<int32_t>(path.size()) * page_tokens_;
  stats_.hits += matched > 0;
  stats_.matched_tokens += matched;
  return matched;
}

int32_t PrefixTree::publish(const int32_t* tokens, int32_t count, const std::string& salt,
                            const int32_t* pages) {
  const int32_t wanted = count / page_tokens_;
  if (wanted < 1 || max_records_ == 0 || max_pages_ == 0) return 0;
  ++stats_.publications;
  Node& base = root(salt);
  ++base.children;  // keeps the root while room is made
  const std::vector<Node*> path = walk(tokens, wanted, salt);
  Node* node = path.empty() ? &base : path.back();
  int32_t added = 0;
  for (int32_t i = static_cast<int32_t>(path.size()); i < wanted; ++i) {
    if (!make_room(node)) break;
    node = add(*node, tokens + static_cast<int64_t>(i) * page_tokens_, pages[i]);
    ++added;
  }
  stats_.published_pages += added;
  stats_.existing_publications += static_cast<int32_t>(path.size()) == wanted;
  if (node != &base) set_record(*node, true);
  if (--base.children == 0) roots_.erase(salt);
  while (max_records_ >= 0 && records() > max_records_) drop_oldest_record();
  return added;
}

// Whether a page may be added below `keep`, which must stay.
bool PrefixTree::make_room(const Node* keep) {
  if (max_pages_ < 0 || cached_pages() < max_pages_) return true;
  return evict_oldest(keep) > 0;
}

PrefixTree::Node* PrefixTree::add(Node& parent, const int32_t* tokens, int32_t page) {
  pool_.hold(page);
  pool_.set_cached(page, true);
  auto owned = std::make_unique<Node>();
  Node* node = owned.get();
  node->parent = &parent;
  node->id = ++last_id_;
  node->hash = hash_page(parent, tokens);
  node->used = ++clock_;
  node->page = page;
  node->tokens.assign(tokens, tokens + page_tokens_);
  if (parent.parent != nullptr && parent.children == 0) leaves_.erase(parent.used);
  ++parent.children;
  leaves_[node->used] = node;
  nodes_.emplace(node->hash, std::move(owned));
  return node;
}

void PrefixTree::touch(Node& node) {
  const uint64_t now = ++clock_;
  if (node.children == 0) {
    leaves_.erase(node.used);
    leaves_[now] = &node;
  }
  if (node.record) {
    records_.erase(node.used);
    records_[now] = &node;
  }
  node.used = now;
}

void PrefixTree::set_record(Node& node, bool record) {
  if (node.record == record) return;
  node.record = record;
  if (record) {
    records_[node.used] = &node;
  } else {
    records_.erase(node.used);
  }
}

bool PrefixTree::remove(Node* node) {
  set_record(*node, false);
  leaves_.erase(node->used);
  pool_.set_cached(node->page, false);
  const bool freed = pool_.give(node->page);
  Node* parent = node->parent;
  if (--parent->children == 0) {
    if (parent->parent != nullptr) {
      leaves_[parent->used] = parent;
    } else {
      roots_.erase(std::string(parent->salt));
    }
  }
  const auto [first, last] = nodes_.equal_range(node->hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.get() == node) {
      nodes_.erase(at);
      break;
    }
  }
  ++stats_.evicted_pages;
  return freed;
}

// Removes a leaf; its record moves to its parent. Returns the pages freed: 1 or 0.
int32_t PrefixTree::evict_leaf(Node* leaf) {
  Node* parent = leaf->parent;
  if (leaf->record && parent->parent != nullptr) {
    set_record(*parent, true);
  }
  return remove(leaf) ? 1 : 0;
}

// Evicts the least recently used leaf that no sequence uses. Returns the pages freed: 1 or 0.
int32_t PrefixTree::evict_oldest(const Node* keep) {
  for (const auto& [used, node] : leaves_) {
    if (node == keep || !is_idle(*node)) continue;
    return evict_leaf(node);
  }
  return 0;
}

// For when every leaf is in use: gives up the ends of one branch, whose pages stay with their
// sequences, until a page before them is free. Returns the pages freed: 1 or 0.
int32_t PrefixTree::evict_blocked() {
  Node* blocked = find_blocked();
  if (blocked == nullptr) return 0;
  while (blocked->children > 0) {
    if (evict_leaf(oldest_leaf_below(*blocked)) > 0) return 1;
  }
  return evict_leaf(blocked);
}

// The last page that no sequence uses on the way to the least recently used leaf that has one.
PrefixTree::Node* PrefixTree::find_blocked() const {
  for (const auto& [used, leaf] : leaves_) {
    for (Node* node = leaf->parent; node->parent != nullptr; node = node->parent) {
      if (is_idle(*node)) return node;
    }
  }
  return nullptr;
}

PrefixTree::Node* PrefixTree::oldest_leaf_below(const Node& ancestor) const {
  for (const auto& [used, leaf] : leaves_) {
    for (const Node* node = leaf->parent; node != nullptr; node = node->parent) {
      if (node == &ancestor) return leaf;
    }
  }
  throw std::logic_error("a node with children has no leaf below it");
}

int32_t PrefixTree::evict(int32_t pages) {
  int32_t freed = 0;
  while (freed < pages && (evict_oldest(nullptr) > 0 || evict_blocked() > 0)) ++freed;
  return freed;
}

// Drops the least recently used endpoint, and its pages up to where another endpoint needs them.
void PrefixTree::drop_oldest_record() {
  Node* node = records_.begin()->second;
  set_record(*node, false);
  ++stats_.evicted_records;
  while (node->parent != nullptr && node->children == 0 && !node->record) {
    Node* parent = node->parent;
    const bool last = parent->parent == nullptr;  // a root goes with its last child
    remove(node);
    if (last) break;
    node = parent;
  }
}

void PrefixTree::clear() {
  for (const auto& [hash, node] : nodes_) {
    pool_.set_cached(node->page, false);
    pool_.give(node->page);
  }
  stats_.evicted_pages += cached_pages();
  stats_.evicted_records += records();
  leaves_.clear();
  records_.clear();
  nodes_.clear();
  roots_.clear();
}

void PrefixTree::check() const {
  std::unordered_map<const Node*, int32_t> children;
  size_t leaves = 0;
  size_t records = 0;
  for (const auto& [hash, node] : nodes_) {
    if (pool_.references(node->page) < 1) throw std::runtime_error("a cached page is free");
    if (find_child(*node->parent, node->tokens.data()) != node.get()) {
      throw std::runtime_error("a node is not found, or stands twice");
    }
    ++children[node->parent];
    leaves += node->children == 0;
    records += node->record;
    if (node->children == 0 && !node->record) throw std::runtime_error("a leaf is no endpoint");
  }
  for (const auto& [hash, node] : nodes_) {
    const auto at = children.find(node.get());
    if (node->children != (at == children.end() ? 0 : at->second)) {
      throw std::runtime_error("children are miscounted");
    }
  }
  if (leaves != leaves_.size() || records != records_.size()) {
    throw std::runtime_error("leaves or records are miscounted");
  }
  if (max_pages_ >= 0 && cached_pages() > max_pages_) throw std::runtime_error("over max_pages");
  if (max_records_ >= 0 && this->records() > max_records_) {
    throw std::runtime_error("over max_records");
  }
}

}  // namespace edgeserve

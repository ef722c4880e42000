// The prefix index: which pages hold the keys and values of which tokens.
//
// A tree with one page of tokens per node and one root per salt. Owned by the engine thread. The
// tree holds one reference to each of its pages. All nodes stand in one hash table by (parent,
// tokens), and tokens are compared on a hit. Pages leave least recently used first, leaves first; an
// end in use is forgotten only when a page before it is needed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "edgeserve/pages.h"

namespace edgeserve {

struct PrefixStats {
  int64_t lookups = 0;
  int64_t hits = 0;
  int64_t looked_up_tokens = 0;
  int64_t matched_tokens = 0;
  int64_t publications = 0;
  int64_t existing_publications = 0;
  int64_t published_pages = 0;
  int64_t evicted_pages = 0;
  int64_t evicted_records = 0;
};

class PrefixTree {
 public:
  // A negative cap is no cap.
  PrefixTree(PagePool& pool, int32_t page_tokens, int64_t max_records, int64_t max_pages);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // Tokens of the longest cached prefix in whole pages, always fewer than `count`. Marks it as used.
  int32_t match(const int32_t* tokens, int32_t count, const std::string& salt);
  // As match, but counts, and appends the pages to `pages` with a reference held for the caller.
  int32_t adopt(const int32_t* tokens, int32_t count, const std::string& salt,
                std::vector<int32_t>& pages);
  // Makes `count / page_tokens` of `pages` reusable. Returns the pages added.
  int32_t publish(const int32_t* tokens, int32_t count, const std::string& salt,
                  const int32_t* pages);
  // Frees `pages` pages, or all that no sequence uses; returns how many became free.
  int32_t evict(int32_t pages);
  void clear();
  void check() const;

  PagePool& pool() const { return pool_; }
  int32_t page_tokens() const { return page_tokens_; }
  int64_t cached_pages() const { return static_cast<int64_t>(nodes_.size()); }
  int64_t records() const { return static_cast<int64_t>(records_.size()); }
  const PrefixStats& stats() const { return stats_; }

 private:
  struct Node {
    Node* parent = nullptr;       // none for a root
    uint64_t id = 0;              // unique over the tree's life; what children hash
    uint64_t hash = 0;            // key in nodes_
    uint64_t used = 0;            // clock of the last use; unique
    int32_t page = -1;            // none for a root
    int32_t children = 0;
    bool record = false;          // a published endpoint
    std::vector<int32_t> tokens;  // [page_tokens]; of a root: empty
    std::string salt;             // of a root
  };

  uint64_t hash_page(const Node& parent, const int32_t* tokens) const;
  Node* find_child(const Node& parent, const int32_t* tokens) const;
  std::vector<Node*> walk(const int32_t* tokens, int32_t pages, const std::string& salt);
  Node& root(const std::string& salt);
  Node* add(Node& parent, const int32_t* tokens, int32_t page);
  void touch(Node& node);
  bool remove(Node* node);  // returns whether its page became free
  bool is_idle(const Node& node) const { return pool_.references(node.page) == 1; }
  int32_t evict_leaf(Node* leaf);
  int32_t evict_oldest(const Node* keep);
  int32_t evict_blocked();
  Node* find_blocked() const;
  Node* oldest_leaf_below(const Node& ancestor) const;
  void set_record(Node& node, bool record);
  void drop_oldest_record();
  bool make_room(const Node* keep);

  PagePool& pool_;
  const int32_t page_tokens_;
  const int64_t max_records_;
  const int64_t max_pages_;
  const uint64_t seed_;
  uint64_t clock_ = 0;
  uint64_t last_id_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Node>> roots_;
  std::unordered_multimap<uint64_t, std::unique_ptr<Node>> nodes_;
  std::map<uint64_t, Node*> leaves_;   // by last use; nodes with a page and no children
  std::map<uint64_t, Node*> records_;  // by last use
  PrefixStats stats_;
};

}  // namespace edgeserve

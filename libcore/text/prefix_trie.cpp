#include "libcore/text/prefix_trie.h"

#include <algorithm>
#include <vector>

namespace megalith {
namespace {

constexpr size_t kBlock =
    256;  // a node's children are in one block, since base ^ c changes the low byte only

using Node = PrefixTrie::Node;

struct Key {
  std::string_view text;
  int32_t id;
};

/// Places the nodes of sorted texts.
class Builder {
 public:
  explicit Builder(std::vector<Key> keys) : keys_(std::move(keys)) {
    grow();
    used_[0] = true;
    open_.push_back({.first = 0, .last = keys_.size(), .depth = 0, .node = 0});
    while (!open_.empty()) {
      const Range range = open_.back();
      open_.pop_back();
      place(range);
    }
  }
  std::vector<Node> take() { return std::move(nodes_); }

 private:
  /// The keys [first, last) begin with the `depth` bytes that lead to `node`.
  struct Range {
    size_t first, last, depth;
    uint32_t node;
  };

  void grow() {
    nodes_.resize(nodes_.size() + kBlock, {.base = 0, .parent = PrefixTrie::kNobody, .id = -1});
    used_.resize(nodes_.size());
  }

  void place(Range range) {
    for (; range.first < range.last && keys_[range.first].text.size() == range.depth; ++range.first)
      nodes_[range.node].id = keys_[range.first].id;
    if (range.first == range.last) return;
    children_.clear();
    size_t begin = range.first;
    const size_t before = open_.size();
    for (size_t i = range.first + 1; i <= range.last; ++i) {
      if (i < range.last && byte(i, range.depth) == byte(begin, range.depth)) continue;
      children_.push_back(byte(begin, range.depth));
      open_.push_back({.first = begin, .last = i, .depth = range.depth + 1, .node = 0});
      begin = i;
    }
    const uint32_t base = free_base();
    nodes_[range.node].base = base;
    for (size_t i = 0; i < children_.size(); ++i) {
      const uint32_t child = base ^ children_[i];
      open_[before + i].node = child;
      nodes_[child].parent = range.node;
      used_[child] = true;
    }
  }

  uint8_t byte(size_t key, size_t at) const { return static_cast<uint8_t>(keys_[key].text[at]); }

  /// A base at which the nodes of all children_ are free. Where several children are to be placed, the search
  /// leaves behind places that few fit; single children fill them later.
  uint32_t free_base() {
    constexpr size_t kTries = 64;
    size_t& from = children_.size() > 1 ? from_of_many_ : from_of_one_;
    size_t tries = 0;
    for (size_t at = from;; ++at) {
      if (at == nodes_.size()) grow();
      if (used_[at]) {
        if (at == from) ++from;
        continue;
      }
      const auto base = static_cast<uint32_t>(at ^ children_[0]);
      const bool fits =
          std::none_of(children_.begin(), children_.end(), [&](uint8_t c) { return used_[base ^ c]; });
      if (fits) return base;
      if (++tries == kTries) {
        from = at;
        tries = 0;
      }
    }
  }

  std::vector<Key> keys_;
  std::vector<Node> nodes_;
  std::vector<bool> used_;
  std::vector<Range> open_;
  std::vector<uint8_t> children_;  // the bytes of the node that is being placed
  size_t from_of_one_ = 1, from_of_many_ = 1;
};

}  // namespace

PrefixTrie::PrefixTrie(std::span<const std::string> texts) {
  std::vector<Key> keys;
  for (size_t id = 0; id < texts.size(); ++id)
    if (!texts[id].empty()) keys.push_back({texts[id], static_cast<int32_t>(id)});
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.text < b.text; });
  nodes_ = SharedArray(Builder(std::move(keys)).take());
}

bool PrefixTrie::fit(const SharedArray<Node>& nodes, size_t ids) {
  const auto fits = [&](const Node& node) {
    return node.base < nodes.size() && node.id < static_cast<int64_t>(ids);
  };
  return !nodes.empty() && nodes.size() % kBlock == 0 && std::all_of(nodes.begin(), nodes.end(), fits);
}

int32_t PrefixTrie::find(std::string_view text) const {
  int32_t found = -1;
  each(text, [&](size_t bytes, int32_t id) {
    if (bytes == text.size()) found = id;
  });
  return found;
}

}  // namespace megalith

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "libcore/base/shared_array.h"

namespace megalith {

/// Finds all tokens with which a text begins. A double array: if node n has a child for byte c, the child is
/// node base(n) ^ c, and its parent is n.
class PrefixTrie {
 public:
  struct Node {
    uint32_t base;
    uint32_t parent;
    int32_t id;  // the token whose text leads here; -1: none
  };
  static constexpr uint32_t kNobody = UINT32_MAX;  // the parent of the root and of free nodes

  /// `texts`: those of each id; an empty one is not found. If two are equal, the later one is found.
  explicit PrefixTrie(std::span<const std::string> texts);
  /// Reuses the nodes of another instance, such as those of a mapped cache file.
  explicit PrefixTrie(SharedArray<Node> nodes) : nodes_(std::move(nodes)) {}
  /// Whether these nodes can be used with `ids` ids: no step leads beyond them.
  static bool fit(const SharedArray<Node>& nodes, size_t ids);
  const SharedArray<Node>& nodes() const { return nodes_; }

  /// Calls take(bytes, id) for each token with which `text` begins, the shortest first.
  template <class Take>
  void each(std::string_view text, const Take& take) const {
    const Node* const nodes = nodes_.data();
    uint32_t at = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t next = nodes[at].base ^ static_cast<uint8_t>(text[i]);
      if (nodes[next].parent != at) return;
      at = next;
      if (nodes[at].id >= 0) take(i + 1, nodes[at].id);
    }
  }
  /// The token with this text; -1: there is none.
  int32_t find(std::string_view text) const;

 private:
  SharedArray<Node> nodes_;
};

}  // namespace megalith

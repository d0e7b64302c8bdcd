#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace megalith {

/// A 128-bit hash of a document's texts: two XXH64 with different seeds.
struct ContentHash {
  uint64_t high = 0, low = 0;
  bool operator==(const ContentHash&) const = default;
};

/// The hash of some texts in order. Texts that are cut differently have different hashes.
ContentHash content_hash(std::span<const std::string_view> texts, ContentHash before = {});

/// The hashes seen so far: 16 bytes each, in 256 open-addressing tables. Each table grows by a quarter at a
/// time, so that memory stays below kBytesEach per hash even while it grows.
class ContentSet {
 public:
  static constexpr size_t kBytesEach = 24;

  /// Returns whether the hash is new.
  bool insert(ContentHash hash);
  bool has(ContentHash hash) const;
  uint64_t size() const { return size_; }
  uint64_t bytes() const;  // of memory

 private:
  struct Table {
    std::vector<ContentHash> slots;  // a zero hash: free slot
    size_t used = 0;
  };
  static size_t find(const std::vector<ContentHash>& slots, ContentHash hash);
  static bool place(std::vector<ContentHash>& slots, ContentHash hash);
  static void grow(Table& table);

  std::array<Table, 256> tables_;
  uint64_t size_ = 0;
};

}  // namespace megalith

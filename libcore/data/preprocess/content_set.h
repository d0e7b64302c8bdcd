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

/// Hash of some texts in order; texts that are cut differently hash differently.
ContentHash content_hash(std::span<const std::string_view> texts, ContentHash before = {});

/// The hashes seen so far: 16 bytes each in 256 open-addressing tables that grow one by one by a quarter, so
/// that the memory stays below kBytesEach a hash, growing included.
class ContentSet {
 public:
  static constexpr size_t kBytesEach = 24;

  /// Whether the hash is new.
  bool insert(ContentHash hash);
  bool has(ContentHash hash) const;
  uint64_t size() const { return size_; }
  uint64_t bytes() const;  // of memory

 private:
  struct Table {
    std::vector<ContentHash> slots;  // a zero hash: free
    size_t used = 0;
  };
  static size_t find(const std::vector<ContentHash>& slots, ContentHash hash);
  static bool place(std::vector<ContentHash>& slots, ContentHash hash);
  static void grow(Table& table);

  std::array<Table, 256> tables_;
  uint64_t size_ = 0;
};

}  // namespace megalith

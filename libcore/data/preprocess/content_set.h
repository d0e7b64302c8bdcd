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

/// The hash of a list of texts. `before` is the hash of the texts before them, which the result also depends
/// on. The same characters, split into texts differently, have a different hash.
ContentHash content_hash(std::span<const std::string_view> texts, ContentHash before = {});

/// A set of the hashes seen so far: 16 bytes each, in 256 open-addressing tables. Each table grows by a
/// quarter at a time, so that memory stays below kBytesEach bytes per hash even while a table grows.
class ContentSet {
 public:
  static constexpr size_t kBytesEach = 24;

  /// Adds a hash; returns whether it is new.
  bool insert(ContentHash hash);
  bool has(ContentHash hash) const;
  uint64_t size() const { return size_; }
  uint64_t bytes() const;  // bytes of memory that the set uses

 private:
  struct Table {
    std::vector<ContentHash> slots;  // a hash of zero marks a free slot
    size_t used = 0;
  };
  static size_t find(const std::vector<ContentHash>& slots, ContentHash hash);
  static bool place(std::vector<ContentHash>& slots, ContentHash hash);
  static void grow(Table& table);

  std::array<Table, 256> tables_;
  uint64_t size_ = 0;
};

}  // namespace megalith

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace megalith {

/// Ids of pretokens seen before, for those of at most 8 * kWords - 1 bytes that have at most kIds ids (at
/// most 7). Two entries lie side by side; a new one pushes out the older of the two, so the size is fixed.
/// One thread at a time.
template <size_t kWords, size_t kIds>
class PieceTable {
 public:
  static constexpr size_t kLongest = 8 * kWords - 1;

  struct Entry {
    std::array<uint64_t, kWords> key{};  // the bytes; in the top byte the length, above it the number of ids
    std::array<int32_t, kIds> ids{};
    size_t size() const { return key[kWords - 1] >> kCountShift; }
  };

  /// 2^bits pairs of entries.
  explicit PieceTable(int bits) : pairs_(size_t{1} << bits), shift_(64 - bits) {}

  /// The entry of `piece` (1 to kLongest bytes), or nullptr. `readable` bytes may be read from its beginning.
  /// Lasts until the next put().
  const Entry* find(std::string_view piece, size_t readable) const {
    const Key key = key_of(piece, readable);
    for (const Entry& entry : pairs_[place(key)])
      if (equal(entry.key, key)) return &entry;
    return nullptr;
  }

  void put(std::string_view piece, std::span<const int32_t> ids) {
    if (piece.size() > kLongest || ids.size() > kIds) return;
    const Key key = key_of(piece, piece.size());
    std::array<Entry, 2>& pair = pairs_[place(key)];
    pair[1] = pair[0];
    pair[0].key = key;
    pair[0].key[kWords - 1] |= uint64_t{ids.size()} << kCountShift;
    std::memcpy(pair[0].ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  using Key = std::array<uint64_t, kWords>;
  // A free entry has length 0. Five bits of length, three of count.
  static constexpr int kLengthShift = 56, kCountShift = 61;
  static constexpr uint64_t kKeyBits = (uint64_t{1} << kCountShift) - 1;
  static_assert(kLongest < 32 && kIds < 8 && std::endian::native == std::endian::little);

  static Key key_of(std::string_view piece, size_t readable) {
    Key key{};
    if (readable >= sizeof key) {
      std::memcpy(key.data(), piece.data(), sizeof key);
      for (size_t w = 0; w < kWords; ++w) {
        const size_t bytes = piece.size() > 8 * w ? piece.size() - 8 * w : 0;
        if (bytes < 8) key[w] &= (uint64_t{1} << (8 * bytes)) - 1;
      }
    } else {
      std::memcpy(key.data(), piece.data(), piece.size());
    }
    key[kWords - 1] |= uint64_t{piece.size()} << kLengthShift;
    return key;
  }
  static bool equal(const Key& entry, const Key& key) {
    uint64_t difference = (entry[kWords - 1] & kKeyBits) ^ key[kWords - 1];
    for (size_t w = 0; w + 1 < kWords; ++w) difference |= entry[w] ^ key[w];
    return difference == 0;
  }
  size_t place(const Key& key) const {
    uint64_t mixed = 0;
    for (uint64_t word : key) mixed = (std::rotl(mixed, 29) ^ word) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u) >> shift_);
  }

  std::vector<std::array<Entry, 2>> pairs_;
  int shift_;
};

/// Short pretokens are most of a text; longer ones (a newline and its indentation, words of other scripts)
/// are few, but joining their bytes is most of the work without a cache.
class PieceCache {
 public:
  /// 2^(bits + 1) short pieces in 64 * 2^bits bytes, 2^(bits - 3) long ones in an eighth of that. bits > 4.
  explicit PieceCache(int bits) : short_(bits), long_(bits - 4) {}

  /// The ids of `piece` (not empty), or an empty span; see PieceTable::find.
  std::span<const int32_t> find(std::string_view piece, size_t readable) const {
    if (piece.size() <= short_.kLongest) return ids_of(short_.find(piece, readable));
    if (piece.size() <= long_.kLongest) return ids_of(long_.find(piece, readable));
    return {};
  }
  void put(std::string_view piece, std::span<const int32_t> ids) {
    if (piece.size() <= short_.kLongest)
      short_.put(piece, ids);
    else
      long_.put(piece, ids);
  }

 private:
  template <class Entry>
  static std::span<const int32_t> ids_of(const Entry* entry) {
    return entry ? std::span<const int32_t>(entry->ids.data(), entry->size()) : std::span<const int32_t>();
  }
  PieceTable<2, 4> short_;
  PieceTable<4, 7> long_;
};

}  // namespace megalith

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/huge_pages.h"

namespace megalith {

/// A short piece (1 to kLongest bytes) as two numbers: its bytes, and in the top byte their number. A longer
/// one has a key that no entry has.
struct PieceKey {
  static constexpr size_t kLongest = 15;
  uint64_t low, high;
  size_t size() const { return high >> kLengthShift & 31; }

  static constexpr int kLengthShift = 56, kCountShift = 61;
  static constexpr uint64_t kBits = (uint64_t{1} << kCountShift) - 1;

  /// Of the `bytes` bytes at `at`, of which 16 can be read. Does not branch.
  static PieceKey of(const char* at, size_t bytes) {
    PieceKey key;
    std::memcpy(&key, at, sizeof key);
    const size_t size = bytes < 16 ? bytes : 16;
    key.low &= kMasks[size].low;
    key.high = (key.high & kMasks[size].high) | uint64_t{size} << kLengthShift;
    return key;
  }
  static PieceKey of(std::string_view piece) {
    char bytes[16] = {};
    std::memcpy(bytes, piece.data(), piece.size() < 16 ? piece.size() : 16);
    return of(bytes, piece.size());
  }

 private:
  struct Mask {
    uint64_t low, high;
  };
  static constexpr std::array<Mask, 17> kMasks = [] {
    std::array<Mask, 17> masks{};
    for (size_t size = 0; size <= 16; ++size)
      masks[size] = {size < 8 ? (uint64_t{1} << (8 * size)) - 1 : ~uint64_t{0},
                     size < 8    ? 0
                     : size < 15 ? (uint64_t{1} << (8 * (size - 8))) - 1
                                 : ~uint64_t{0} >> 8};
    return masks;
  }();
  static_assert(std::endian::native == std::endian::little);
};

/// Ids of short pieces that have at most kIds of them. Two entries lie side by side in a cache line; what
/// came first stays, later ones push each other out, so the size is fixed. One thread at a time.
class PieceTable {
 public:
  static constexpr size_t kIds = 4;

  struct Entry {
    PieceKey key;  // above the length: the number of ids, 0 when the entry is free
    std::array<int32_t, kIds> ids;
    /// Number of ids; more than kIds: they are not here.
    size_t count() const { return key.high >> PieceKey::kCountShift; }
    bool is(const PieceKey& other) const {
      return ((key.low ^ other.low) | ((key.high & PieceKey::kBits) ^ other.high)) == 0;
    }
  };
  struct alignas(64) Line {
    std::array<Entry, 2> entries;
    /// The entry of a piece, or nullptr.
    const Entry* find(const PieceKey& key) const {
      const Entry* const entry = &entries[entries[1].is(key)];
      return entry->is(key) ? entry : nullptr;
    }
  };

  /// 2^bits lines.
  explicit PieceTable(int bits)
      : memory_(sizeof(Line) << bits), lines_(memory_.as<Line>()), shift_(64 - bits) {}

  const Line& line(const PieceKey& key) const { return lines_[place(key)]; }
  const Entry* find(std::string_view piece) const {
    const PieceKey key = PieceKey::of(piece);
    return line(key).find(key);
  }
  /// Makes an entry that says only that the piece has more ids. Does nothing when the piece is too long.
  void mark(const PieceKey& key) {
    if (key.size() <= PieceKey::kLongest)
      free_entry(key).key = {key.low, key.high | kMore << PieceKey::kCountShift};
  }
  /// Does nothing when the piece is too long (the key says so) or has too many ids.
  void put(const PieceKey& key, std::span<const int32_t> ids) {
    if (key.size() > PieceKey::kLongest || ids.size() > kIds || ids.empty()) return;
    Entry& entry = free_entry(key);
    entry.key = {key.low, key.high | uint64_t{ids.size()} << PieceKey::kCountShift};
    std::memcpy(entry.ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  static constexpr uint64_t kMore = 7;  // in place of the number of ids
  Entry& free_entry(const PieceKey& key) {
    std::array<Entry, 2>& entries = lines_[place(key)].entries;
    return entries[entries[0].count() > 0 && !entries[0].is(key)];
  }
  size_t place(const PieceKey& key) const {
    return static_cast<size_t>(
        (key.low * 0x9E3779B97F4A7C15u + std::rotl(key.high, 27) * 0xD6E8FEB86659FD93u) >> shift_);
  }

  HugePages memory_;
  std::span<Line> lines_;
  int shift_;
};

/// Ids of longer pieces, or of those with more ids. When the room for them is full all are forgotten. One
/// thread at a time.
class LongPieceCache {
 public:
  /// Pieces of more bytes are not kept.
  static constexpr size_t kLongest = 512;
  /// Room for `bytes` bytes of pieces and ids.
  explicit LongPieceCache(size_t bytes);

  /// The ids of `piece`, or an empty span. Lasts until the next put().
  std::span<const int32_t> find(std::string_view piece) const;
  void put(std::string_view piece, std::span<const int32_t> ids);

 private:
  // A record: the number of bytes, the number of ids, the ids, the bytes.
  struct Slot {
    uint32_t tag;
    uint32_t at;  // in words, from 1; 0: free
  };
  static uint64_t hash(std::string_view piece);
  const Slot& slot(uint64_t hash) const { return slots_[hash & (slots_.size() - 1)]; }

  HugePages memory_, slot_memory_;
  std::span<int32_t> words_;
  std::span<Slot> slots_;
  size_t used_ = 1;
};

}  // namespace megalith

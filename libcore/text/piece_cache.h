#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/huge_pages.h"
#include "libcore/text/piece_key.h"

namespace megalith {

/// Ids of longer pieces, or of those with more ids than a PieceTable has room for. When the room for them is
/// full all are forgotten. One thread at a time.
class LongPieceCache {
 public:
  /// Pieces of more bytes are not kept.
  static constexpr size_t kLongest = 512;
  /// Room for `bytes` bytes of pieces and ids.
  explicit LongPieceCache(size_t bytes);

  /// The ids of `piece`, or an empty span. Lasts until the next put() or append().
  std::span<const int32_t> find(std::string_view piece) const;
  void put(std::string_view piece, std::span<const int32_t> ids);

  /// Where ids lie that are found without their piece.
  struct Ref {
    uint32_t at, generation;  // all zero: nowhere
  };
  /// `ids`: at most kLongest.
  Ref append(std::span<const int32_t> ids);
  /// What was appended, or an empty span when it was forgotten since. Lasts as that of find().
  std::span<const int32_t> get(Ref ref) const;

 private:
  // A record: the number of bytes, the number of ids, the ids, the bytes.
  struct Slot {
    uint32_t tag;
    uint32_t at;  // in words, from 1; 0: free
  };
  static uint64_t hash(std::string_view piece);
  const Slot& slot(uint64_t hash) const { return slots_[hash & (slots_.size() - 1)]; }
  uint32_t add_record(std::string_view piece, std::span<const int32_t> ids);

  HugePages memory_, slot_memory_;
  std::span<int32_t> words_;
  std::span<Slot> slots_;
  size_t used_ = 1;
  uint32_t generation_ = 1;
};

/// Ids of short pieces. Two entries lie side by side in a cache line; what came first stays, later ones push
/// each other out, so the size is fixed. One thread at a time.
class PieceTable {
 public:
  static constexpr size_t kIdBytes = 16;  // of an entry

  struct Entry {
    PieceKey key;  // above the length: the number of ids, 0 when the entry is free
    alignas(8) std::array<std::byte, kIdBytes> ids;
    /// Number of ids; kMore: they are not here.
    size_t count() const { return key.high >> PieceKey::kCountShift; }
    bool is(const PieceKey& other) const {
      return ((key.low ^ other.low) | ((key.high & PieceKey::kBits) ^ other.high)) == 0;
    }
    /// Writes kIdBytes / sizeof(Stored) ids, of which the first count() are the piece's. `Stored` is what the
    /// table was made for.
    template <class Stored, class Id>
    void copy_ids(Id* out) const {
      std::array<Stored, kIdBytes / sizeof(Stored)> stored;
      std::memcpy(stored.data(), ids.data(), kIdBytes);
      for (size_t i = 0; i < stored.size(); ++i) out[i] = static_cast<Id>(stored[i]);
    }
  };
  static constexpr size_t kMore = 15;
  struct alignas(64) Line {
    std::array<Entry, 2> entries;
    /// The entry of the piece, if it has one; else any.
    const Entry& candidate(const PieceKey& key) const { return entries[entries[1].is(key)]; }
  };

  /// 2^bits lines, for ids of `id_bytes` bytes: 2 (unsigned) or 4.
  PieceTable(int bits, size_t id_bytes)
      : memory_(sizeof(Line) << bits),
        lines_(memory_.as<Line>()),
        shift_(64 - bits),
        most_ids_(kIdBytes / id_bytes) {}

  const Line& line(const PieceKey& key) const { return lines_[place(key)]; }
  /// Ids that an entry has room for.
  size_t most_ids() const { return most_ids_; }
  /// `key` is that of a short piece; `ids`: at most most_ids(), and without any nothing is done.
  void put(const PieceKey& key, std::span<const int32_t> ids);
  /// Makes an entry that says only where the ids are.
  void put(const PieceKey& key, LongPieceCache::Ref ids);

 private:
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
  size_t most_ids_;
};

}  // namespace megalith

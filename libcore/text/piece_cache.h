#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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

/// The ids of a piece in 16 bytes, `Stored` each, and how many there are.
template <class Stored>
struct PackedIds;

template <>
struct PackedIds<uint16_t> {
  static constexpr size_t kMost = 7;
  std::array<uint16_t, kMost> ids;
  uint16_t number;
  static PackedIds of(std::span<const int32_t> ids) {
    PackedIds packed{.ids = {}, .number = static_cast<uint16_t>(ids.size())};
    for (size_t i = 0; i < ids.size(); ++i) packed.ids[i] = static_cast<uint16_t>(ids[i]);
    return packed;
  }
  size_t count() const { return number; }
  /// Writes 8 ids, of which count() mean something.
  template <class Id>
  void write(Id* out) const {
    std::array<uint16_t, kMost + 1> all;
    std::memcpy(all.data(), this, sizeof *this);
    for (size_t i = 0; i < all.size(); ++i) out[i] = static_cast<Id>(all[i]);
  }
};

template <>
struct PackedIds<int32_t> {
  static constexpr size_t kMost = 4;
  static constexpr int kCountShift = 24;  // in the first word; ids are less than 2^21 (MergeTables)
  std::array<uint32_t, kMost> words;
  static PackedIds of(std::span<const int32_t> ids) {
    PackedIds packed{};
    for (size_t i = 0; i < ids.size(); ++i) packed.words[i] = static_cast<uint32_t>(ids[i]);
    packed.words[0] |= static_cast<uint32_t>(ids.size()) << kCountShift;
    return packed;
  }
  size_t count() const { return words[0] >> kCountShift; }
  /// Writes 4 ids, of which count() mean something.
  void write(int32_t* out) const {
    for (size_t i = 0; i < kMost; ++i)
      out[i] = static_cast<int32_t>(words[i] & ((uint32_t{1} << kCountShift) - 1));
  }
};

/// Ids of short pieces. Two entries lie side by side in a cache line; what came first stays, later ones push
/// each other out, so the size is fixed. One thread at a time.
class PieceTable {
 public:
  struct Entry {
    PieceKey key;  // all zero: free
    alignas(8) std::array<std::byte, 16> packed;
    template <class Stored>
    PackedIds<Stored> ids() const {
      PackedIds<Stored> ids;
      std::memcpy(&ids, packed.data(), sizeof ids);
      return ids;
    }
  };
  struct alignas(64) Line {
    std::array<Entry, 2> entries;
  };

  /// 2^bits lines, for ids of 4 bytes or of 2 (unsigned).
  PieceTable(int bits, bool wide)
      : memory_(sizeof(Line) << bits), lines_(memory_.as<Line>()), shift_(64 - bits), wide_(wide) {}

  /// The line of a key: (key.low * kLow + key.high, turned left by kTurn, * kHigh) >> shift.
  struct Hash {
    static constexpr uint64_t kLow = 0x9E3779B97F4A7C15u, kHigh = 0xD6E8FEB86659FD93u;
    static constexpr int kTurn = 27;
    int shift;
  };
  Hash hash() const { return {shift_}; }
  std::span<const Line> lines() const { return lines_; }
  const Line& line(const PieceKey& key) const { return lines_[place(key)]; }
  /// `key` is that of a short piece. Too many ids, or none, are not kept.
  void put(const PieceKey& key, std::span<const int32_t> ids);

  /// Where the ids are of a piece that has too many for an entry. Its entry is not the piece's own.
  void put_far(const PieceKey& key, LongPieceCache::Ref ids);
  std::optional<LongPieceCache::Ref> find_far(const PieceKey& key) const;

  /// Ids that an entry has room for.
  size_t most_ids() const { return wide_ ? PackedIds<int32_t>::kMost : PackedIds<uint16_t>::kMost; }

 private:
  /// A key that no piece has; its line is that of `key`.
  static PieceKey far(const PieceKey& key) { return {key.low, key.high | uint64_t{1} << 63}; }
  template <class Packed>
  void put(Line& line, const PieceKey& key, const Packed& packed);
  size_t place(const PieceKey& key) const {
    return static_cast<size_t>((key.low * Hash::kLow + std::rotl(key.high, Hash::kTurn) * Hash::kHigh) >>
                               shift_);
  }

  HugePages memory_;
  std::span<Line> lines_;
  int shift_;
  bool wide_;
};

}  // namespace megalith

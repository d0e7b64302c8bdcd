#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/text/bpe/cache/epochs.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// A cache of the ids of long pieces, and of pieces with more ids than fit in an entry of a PieceTable. When
/// it is full, it forgets its oldest quarter. Any number of threads may use it at once; readers need a
/// ReadGuard.
class LongPieceCache {
 public:
  /// The longest piece that is kept, in bytes.
  static constexpr size_t kLongest = 512;
  /// Room for `bytes` bytes of pieces and ids. Keeps a reference to `epochs`, whose readers call find()
  /// and get().
  LongPieceCache(size_t bytes, const Epochs& epochs);

  /// The ids of `piece`, or an empty span if they are not known. Valid until the reader's guard ends.
  std::span<const int32_t> find(std::string_view piece) const;
  /// Keeps the ids of `piece`. Does nothing while another thread is adding.
  void put(std::string_view piece, std::span<const int32_t> ids);

  /// Where append() stored ids, so that get() finds them without their piece.
  struct alignas(8) Ref {
    uint32_t at, generation;  // both zero: no ids are stored
  };
  /// Stores `ids`, at most kLongest. Returns an empty Ref if there is no room, or if another thread is
  /// adding, since an encoder must not wait.
  Ref append(std::span<const int32_t> ids);
  /// The ids that append() stored, or an empty span if they were forgotten before the reader's guard began.
  /// Valid until that guard ends.
  std::span<const int32_t> get(Ref ref) const;

 private:
  // A record holds the number of bytes, the number of ids, the ids and the bytes; it is complete before it
  // can be found. A slot holds the position of a record in words (from 1) and, above it, a tag; zero means
  // free.
  static constexpr int kTagShift = 32;
  /// The number of parts. One of them is empty, or will be after a grace period.
  static constexpr uint32_t kParts = 4;
  static uint64_t hash(std::string_view piece);
  std::atomic_ref<uint64_t> slot(uint64_t hash) const {
    return std::atomic_ref(slots_[hash & (slots_.size() - 1)]);
  }
  Ref add_record(std::string_view piece, std::span<const int32_t> ids);  // the caller holds the mutex
  bool open_part();
  void forget_part(uint32_t part);

  HugePages memory_, slot_memory_;
  std::span<int32_t> words_;
  std::span<uint64_t> slots_;
  const Epochs& epochs_;

  alignas(64) std::mutex mutex_;  // held while adding; in another cache line than what readers need
  size_t used_ = 1;               // used words of the part that is being filled
  uint32_t generation_ = 1;       // generation of that part; each older part has a generation one lower
  Epochs::GracePeriod forgotten_;
  alignas(64) std::atomic<uint32_t> oldest_{1};  // the oldest generation that is not forgotten
};

/// The ids of a piece, each a `Stored`, and their number, in 16 bytes.
template <class Stored>
struct PackedIds;

template <>
struct PackedIds<uint16_t> {
  static constexpr size_t kMax = 7;
  std::array<uint16_t, kMax> ids;
  uint16_t number;
  static PackedIds of(std::span<const int32_t> ids) {
    PackedIds packed{.ids = {}, .number = static_cast<uint16_t>(ids.size())};
    for (size_t i = 0; i < ids.size(); ++i) packed.ids[i] = static_cast<uint16_t>(ids[i]);
    return packed;
  }
  size_t count() const { return number; }
  /// Writes 8 ids; the first count() are valid.
  template <class Id>
  void write(Id* out) const {
    std::array<uint16_t, kMax + 1> all;
    std::memcpy(all.data(), this, sizeof *this);
    for (size_t i = 0; i < all.size(); ++i) out[i] = static_cast<Id>(all[i]);
  }
};

template <>
struct PackedIds<int32_t> {
  static constexpr size_t kMax = 4;
  /// The position of the count in the first word, above an id, which is below 2^21 (MergeTables).
  static constexpr int kCountShift = 24;
  std::array<uint32_t, kMax> words;
  static PackedIds of(std::span<const int32_t> ids) {
    PackedIds packed{};
    for (size_t i = 0; i < ids.size(); ++i) packed.words[i] = static_cast<uint32_t>(ids[i]);
    packed.words[0] |= static_cast<uint32_t>(ids.size()) << kCountShift;
    return packed;
  }
  size_t count() const { return words[0] >> kCountShift; }
  /// Writes 4 ids; the first count() are valid.
  void write(int32_t* out) const {
    for (size_t i = 0; i < kMax; ++i)
      out[i] = static_cast<int32_t>(words[i] & ((uint32_t{1} << kCountShift) - 1));
  }
};

/// Ids of short pieces, in a table of fixed size. Two entries share a cache line: the first one stays, and in
/// the second, later pieces replace earlier ones. Any number of threads may use it at once; readers need a
/// ReadGuard.
///
/// An entry is written while no thread can find it. The high word of its key is written last and read first;
/// until then it marks the entry as free or being written. Vector kernels instead read a key by one aligned
/// 16-byte load, which is atomic on processors with AVX (Intel SDM 3A 9.1.1, AMD64 APM 2 7.3.2) and which
/// x86-64 keeps in order.
class PieceTable {
 public:
  struct Entry {
    PieceKey key;  // all zero: free
    alignas(16) std::array<std::byte, 16> packed;
    template <class Stored>
    PackedIds<Stored> ids() const {
      PackedIds<Stored> ids;
      std::memcpy(&ids, packed.data(), sizeof ids);
      return ids;
    }
    /// Whether this is the entry of `wanted`. Has no branch: the outcome follows no pattern that a processor
    /// could predict.
    bool is(const PieceKey& wanted) const {
      const uint64_t high = __atomic_load_n(&key.high, __ATOMIC_ACQUIRE);
      return ((high ^ wanted.high) | (__atomic_load_n(&key.low, __ATOMIC_RELAXED) ^ wanted.low)) == 0;
    }
  };
  struct alignas(64) Line {
    std::array<Entry, 2> entries;
  };
  /// A piece's ids as an entry holds them.
  using Packed = std::array<std::byte, sizeof(Entry::packed)>;

  /// `bits`: the table has 2^bits lines. `wide`: ids have 4 bytes, otherwise 2 (unsigned).
  PieceTable(int bits, bool wide)
      : memory_(sizeof(Line) << bits), lines_(memory_.as<Line>()), shift_(64 - bits), wide_(wide) {}

  /// Gives a key a number of 64 - shift bits; in a table, the index of its line.
  struct Hash {
    static constexpr uint64_t kLow = 0x9E3779B97F4A7C15u, kHigh = 0xD6E8FEB86659FD93u;
    static constexpr int kTurn = 27;
    int shift;
    size_t operator()(const PieceKey& key) const {
      return static_cast<size_t>((key.low * kLow + std::rotl(key.high, kTurn) * kHigh) >> shift);
    }
  };
  Hash hash() const { return {shift_}; }
  std::span<const Line> lines() const { return lines_; }
  const Line& line(const PieceKey& key) const { return lines_[place(key)]; }

  /// How many ids fit in an entry.
  size_t max_ids() const { return wide_ ? PackedIds<int32_t>::kMax : PackedIds<uint16_t>::kMax; }
  /// Packs `ids`, which must be 1 to max_ids() ids.
  Packed pack(std::span<const int32_t> ids) const;
  static Packed pack(LongPieceCache::Ref ref);

  /// far(): a key that no piece has, in the same line as `key`. If a piece has too many ids for an entry, the
  /// entry of far(key) holds the Ref of its ids. So every piece is found in one line.
  static PieceKey far(const PieceKey& key) { return {key.low, key.high | uint64_t{1} << 63}; }
  std::optional<LongPieceCache::Ref> find_far(const PieceKey& key) const;
  /// Whether `key` has an entry right now. Needs no guard if the caller accepts that the answer may be out of
  /// date at once.
  bool has(const PieceKey& key) const;
  /// Replaces the Ref that find_far() returned under the same guard.
  void move_far(const PieceKey& key, LongPieceCache::Ref ref);

  /// Adds an entry for `key`, the key of a short piece or far() of one. Returns whether `key` has an entry
  /// now; false: its line has no free entry.
  bool add(const PieceKey& key, const Packed& ids);
  /// An entry that was taken out, and the high word of its key.
  struct TakenEntry {
    Entry* entry;  // may be null
    uint64_t high;
  };
  /// Makes room for a key by taking out an entry. The entry can no longer be found, and waits for fill() or
  /// put_back(). Null while another thread has taken it out.
  TakenEntry take_out(const PieceKey& key);
  static void put_back(const TakenEntry& taken);
  /// Writes a taken-out entry. To be called after the grace period that began after take_out().
  static void fill(Entry& entry, const PieceKey& key, const Packed& ids);

 private:
  static constexpr uint64_t kBeingWritten = ~uint64_t{0};  // a key's high word; no piece has it
  size_t place(const PieceKey& key) const { return hash()({key.low, key.high & ~(uint64_t{1} << 63)}); }

  HugePages memory_;
  std::span<Line> lines_;
  int shift_;
  bool wide_;
};

}  // namespace megalith

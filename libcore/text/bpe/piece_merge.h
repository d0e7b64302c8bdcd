#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "libcore/base/machine/isa.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// The tables of a BytePairEncoder, for the kernels that merge many short pieces at a time.
struct MergeTables {
  // The rank of a pair that is not joined. It is greater than all others, so it is never the smallest. Ranks
  // have 22 bits, ids 21.
  static constexpr int kIdBits = 21, kRankBits = 22;
  static constexpr uint32_t kNoRank = uint32_t{1} << kRankBits;
  // A slot holds a pair in the bits above its rank. No id is kNobody, so no pair has the bits of a free slot.
  static constexpr int32_t kNobody = (1 << kIdBits) - 1;
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct alignas(32) Bucket {
    std::array<uint64_t, 4> slots;  // slots are filled from the first one on
  };

  const Bucket* buckets;  // 2^(64 - shift) buckets; a full one continues in the next
  int shift;
  const int32_t* merged;       // id of the joined token by rank, or kTied; null: the rank is the id
  const uint32_t* byte_ranks;  // rank of a pair of bytes, at first * 256 + second
  const int32_t* byte_ids;     // 256 ids
  // Pairs that have the same rank and give different tokens. A slot holds such a pair in its high bits and
  // the id of the joined token in its low ones. Null: there are none.
  const Bucket* ties = nullptr;
  int ties_shift = 0;
  static constexpr int32_t kTied = -1;

  static uint64_t pair_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << kIdBits | static_cast<uint32_t>(right);
  }
  static size_t place(uint64_t pair, int shift) {
    return static_cast<size_t>((pair * 0x9E3779B97F4A7C15u) >> shift);
  }
  size_t place(uint64_t pair) const { return place(pair, shift); }
  /// The rank of a pair (pair_of()), or kNoRank.
  uint32_t rank(uint64_t pair) const { return below(buckets, shift, pair); }
  /// The id of the token that a pair with this rank is joined to.
  int32_t joined(uint32_t rank, uint64_t pair) const {
    if (merged == nullptr) return static_cast<int32_t>(rank);
    const int32_t id = merged[rank];
    return id != kTied ? id : static_cast<int32_t>(below(ties, ties_shift, pair));
  }
  /// The low bits of the slot that holds this pair in its high bits; kNoRank if none does.
  static uint32_t below(const Bucket* buckets, int shift, uint64_t pair) {
    const size_t last = (size_t{1} << (64 - shift)) - 1;
    uint64_t found = kNoRank;
    for (size_t at = place(pair, shift);; at = (at + 1) & last) {
      const Bucket& bucket = buckets[at];
      for (const uint64_t slot : bucket.slots)  // without a branch for each slot
        found = slot >> kRankBits == pair ? slot & (kNoRank - 1) : found;
      if (bucket.slots.back() == kFree || found != kNoRank) [[likely]]
        return static_cast<uint32_t>(found);
    }
  }
};

/// The ids of a short piece.
struct MergedPiece {
  size_t count;
  std::array<int32_t, PieceKey::kLongest> ids;
};

/// Fills out[i] with the ids of keys[i] (at most PieceKey::kLongest bytes), as BytePairEncoder::encode gives
/// them. Several are merged side by side, so that the processor waits for the tables of one while it works on
/// another.
using MergePieces = void (*)(const MergeTables& tables, std::span<const PieceKey> keys, MergedPiece* out);
void merge_pieces_generic(const MergeTables& tables, std::span<const PieceKey> keys, MergedPiece* out);
void merge_pieces_avx2(const MergeTables& tables, std::span<const PieceKey> keys, MergedPiece* out);
/// The same for pieces whose `ids` are the symbols with which merging starts; they are replaced.
using MergeSymbols = void (*)(const MergeTables& tables, std::span<MergedPiece* const> pieces);
void merge_symbols_generic(const MergeTables& tables, std::span<MergedPiece* const> pieces);
void merge_symbols_avx2(const MergeTables& tables, std::span<MergedPiece* const> pieces);
/// Merges a piece of up to kMostSymbols symbols, `ids`, and returns how many are left there. `bytes`: the
/// piece's, if each of them is a symbol; else null.
constexpr size_t kMostSymbols = 64;
using MergeOne = size_t (*)(const MergeTables& tables, const uint8_t* bytes, int32_t* ids, size_t n);
size_t merge_one_generic(const MergeTables& tables, const uint8_t* bytes, int32_t* ids, size_t n);
size_t merge_one_avx2(const MergeTables& tables, const uint8_t* bytes, int32_t* ids, size_t n);
/// The fastest implementations for `isa`.
struct PieceMerging {
  MergePieces bytes;
  MergeSymbols symbols;
  MergeOne one;
};
PieceMerging piece_merging(Isa isa);

}  // namespace megalith

#pragma once

#include <algorithm>
#include <cstring>

#include "libcore/text/bpe/piece_merge.h"

/// The merging of short pieces, for source files that are compiled for one instruction set. It must not call
/// inline functions of other headers that the compiler might not inline: the linker keeps a single copy of
/// such a function, perhaps one that only some processors can run.
namespace megalith {
namespace {

inline constexpr size_t kPlaces = 16;
inline constexpr int kPlaceBits = 4;
inline constexpr auto kNoStep = static_cast<int32_t>(MergeTables::kNoRank << kPlaceBits);
static_assert(PieceKey::kLongest + 1 == kPlaces);

/// A piece that is being merged. Each symbol stays at the place of its first byte; the bits of `alive` say
/// which are left. Neighbours that do not exist are kNobody, which joins nothing, so the only branch of a
/// step is the one that ends the piece. Other branches would be slow: the pairs of new words follow no
/// pattern that a processor could predict.
struct Lane {
  /// For each place, the rank of the pair of this and the next symbol in the high bits and the place in the
  /// low bits, so that the smallest value is also the leftmost.
  alignas(64) int32_t steps[kPlaces];
  int32_t around[kPlaces + 2];  // symbols, and kNobody on both sides
  uint32_t alive;
  uint32_t end;  // the bit after the last symbol's
  size_t piece;
  // The last join: its place (at), the place of its left neighbour (previous; -1: none), and its pairs with
  // both neighbours (left, right). The ranks of these pairs are looked up later, so that the tables have time
  // to arrive.
  uint32_t at;
  int previous;
  uint64_t left, right;
};

inline int32_t step_of(uint32_t rank, size_t place) {
  return static_cast<int32_t>(rank << kPlaceBits | static_cast<uint32_t>(place));
}

/// Pieces of bytes, each of which is a symbol.
struct BytePieces {
  const MergeTables& tables;
  const PieceKey* keys;
  MergedPiece* merged;

  MergedPiece& out(size_t piece) const { return merged[piece]; }
  /// Fills steps and symbols. Returns the number of symbols.
  size_t start(size_t piece, Lane& lane) const {
    const PieceKey& key = keys[piece];
    const size_t n = key.high >> PieceKey::kLengthShift;
    const uint64_t words[2] = {key.low, key.high};
    uint8_t bytes[kPlaces];
    __builtin_memcpy(bytes, words, kPlaces);
    for (size_t i = 0; i + 1 < kPlaces; ++i) {
      const uint32_t rank = tables.byte_ranks[size_t{bytes[i]} << 8 | bytes[i + 1]];
      lane.steps[i] = i + 1 < n ? step_of(rank, i) : kNoStep;
      lane.around[i + 1] = tables.byte_ids[bytes[i]];
    }
    return n;
  }
};

/// Pieces of other symbols, which are there already.
template <class Simd>
struct SymbolPieces {
  const MergeTables& tables;
  MergedPiece* const* pieces;

  MergedPiece& out(size_t piece) const { return *pieces[piece]; }
  size_t start(size_t piece, Lane& lane) const {
    const MergedPiece& from = *pieces[piece];
    __builtin_memcpy(lane.around + 1, from.ids.data(), sizeof from.ids);
    for (size_t i = 0; i + 1 < kPlaces; ++i)
      lane.steps[i] = i + 1 < from.count
                          ? step_of(Simd::rank(tables, MergeTables::pair_of(from.ids[i], from.ids[i + 1])), i)
                          : kNoStep;
    return from.count;
  }
};

template <class Simd, class Pieces>
class PieceMerger {
 public:
  PieceMerger(const MergeTables& tables, const Pieces& pieces, size_t count)
      : tables_(tables), ties_(tables), pieces_(pieces), count_(count) {
    ties_.buckets = tables.ties;
    ties_.shift = tables.ties_shift;
  }

  /// Merges all pieces. The tables are larger than the caches that other work leaves for them. So first every
  /// lane prefetches the entries that it will need, and only then the lanes read in turn: all waits overlap.
  void run() {
    size_t active = 0;
    while (active < kLanes && next_ < count_) start(lanes_[active++]);
    while (active > 0) {
      for (size_t i = 0; i < active;) {
        Lane& lane = lanes_[i];
        if (join(lane)) {
          ++i;
          continue;
        }
        finish(lane);
        if (next_ < count_)
          start(lane);
        else
          lane = lanes_[--active];
      }
      for (size_t i = 0; i < active; ++i) look_up(lanes_[i]);
    }
  }

 private:
  static constexpr size_t kLanes = 16;

  void start(Lane& lane) {
    lane.piece = next_++;
    const size_t n = pieces_.start(lane.piece, lane);
    lane.alive = (1U << n) - 1;
    lane.end = 1U << n;
    lane.around[0] = lane.around[n + 1] = MergeTables::kNobody;
    lane.steps[kPlaces - 1] = kNoStep;
  }

  /// Joins the next pair; returns false if there is none.
  bool join(Lane& lane) {
    const int32_t best = Simd::min_step(lane.steps);
    if (best >= kNoStep) return false;
    int32_t* const symbols = lane.around + 1;
    const auto at = static_cast<uint32_t>(best) & (kPlaces - 1);
    const uint32_t rank = static_cast<uint32_t>(best) >> kPlaceBits;
    const uint32_t after = lane.alive & (~1U << at);
    const auto gone = static_cast<uint32_t>(__builtin_ctz(after));
    lane.alive ^= 1U << gone;
    const uint32_t rest = after & (after - 1), before = lane.alive & ((1U << at) - 1);
    // An absent left neighbour has place -1, and an absent right one the end of the piece. That end is found
    // if `rest` has no bit.
    const auto next = static_cast<uint32_t>(__builtin_ctz(rest | lane.end));
    int32_t id = tables_.merged ? tables_.merged[rank] : static_cast<int32_t>(rank);
    if (id == MergeTables::kTied) [[unlikely]]
      id = static_cast<int32_t>(Simd::rank(ties_, MergeTables::pair_of(symbols[at], symbols[gone])));
    symbols[at] = id;
    lane.steps[gone] = kNoStep;
    lane.at = static_cast<uint32_t>(at);
    lane.previous = 31 - __builtin_clz(before << 1 | 1) - 1;
    lane.left = MergeTables::pair_of(symbols[lane.previous], id);
    lane.right = MergeTables::pair_of(id, symbols[next]);
    __builtin_prefetch(tables_.buckets + tables_.place(lane.left));
    __builtin_prefetch(tables_.buckets + tables_.place(lane.right));
    return true;
  }

  /// Looks up the ranks of the two pairs that join() formed.
  void look_up(Lane& lane) {
    const uint32_t left = Simd::rank(tables_, lane.left), right = Simd::rank(tables_, lane.right);
    lane.steps[lane.at] = step_of(right, lane.at);
    // Without a left neighbour, kNoStep is written to the last place, which holds kNoStep anyway.
    lane.steps[static_cast<uint32_t>(lane.previous) & (kPlaces - 1)] =
        lane.previous >= 0 ? step_of(left, static_cast<uint32_t>(lane.previous)) : kNoStep;
  }

  void finish(const Lane& lane) {
    MergedPiece& out = pieces_.out(lane.piece);
    size_t count = 0;
    for (uint32_t left = lane.alive; left != 0; left &= left - 1)
      out.ids[count++] = lane.around[1 + __builtin_ctz(left)];
    out.count = count;
  }

  const MergeTables& tables_;
  MergeTables ties_;  // has the ties as its buckets, for Simd::rank()
  Pieces pieces_;
  size_t count_, next_ = 0;
  Lane lanes_[kLanes];
};

/// One piece of up to kMostSymbols symbols. Works as a Lane, but looks ranks up at once: the pieces that come
/// here are few, and each has enough pairs for the processor to wait for.
template <class Simd>
class OnePiece {
 public:
  OnePiece(const MergeTables& tables, const int32_t* ids, size_t n) : tables_(tables), ties_(tables), n_(n) {
    ties_.buckets = tables.ties;
    ties_.shift = tables.ties_shift;
    __builtin_memcpy(symbols_, ids, n * sizeof *ids);
    symbols_[-1] = symbols_[n] = MergeTables::kNobody;
    alive_ = n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
    rounded_ = (n + kStep - 1) / kStep * kStep;
    for (size_t i = n - 1; i < rounded_; ++i) steps_[i] = kNone;
  }

  /// The rank of symbol i and the next one.
  void start(size_t i, uint32_t rank) { steps_[i] = step(rank, i); }
  uint32_t rank_after(size_t i) const { return rank(symbols_[i], symbols_[i + 1]); }

  void run() {
    for (int32_t best; (best = Simd::min_of(steps_, rounded_)) < kNone;) {
      const auto at = static_cast<size_t>(best) & (kMostSymbols - 1);
      join(at, static_cast<uint32_t>(best) >> kBits);
    }
  }

  /// Writes the ids that are left and returns their number.
  size_t take(int32_t* ids) const {
    size_t count = 0;
    for (uint64_t left = alive_; left != 0; left &= left - 1) ids[count++] = symbols_[__builtin_ctzll(left)];
    return count;
  }

 private:
  static constexpr int kBits = 6;  // of a place
  static constexpr size_t kStep = 8;
  static constexpr auto kNone = static_cast<int32_t>(MergeTables::kNoRank << kBits);
  static_assert(kMostSymbols == size_t{1} << kBits);

  static int32_t step(uint32_t rank, size_t place) {
    return static_cast<int32_t>(rank << kBits | static_cast<uint32_t>(place));
  }
  uint32_t rank(int32_t left, int32_t right) const {
    return Simd::rank(tables_, MergeTables::pair_of(left, right));
  }

  void join(size_t at, uint32_t rank_of_pair) {
    const uint64_t after = alive_ & (~uint64_t{1} << at);
    const auto gone = static_cast<size_t>(__builtin_ctzll(after));
    alive_ ^= uint64_t{1} << gone;
    const uint64_t rest = after & (after - 1), before = alive_ & ((uint64_t{1} << at) - 1);
    // -1 and n are the places of absent neighbours.
    const auto next = rest == 0 ? n_ : static_cast<size_t>(__builtin_ctzll(rest));
    const int previous = before == 0 ? -1 : 63 - __builtin_clzll(before);
    int32_t id = tables_.merged ? tables_.merged[rank_of_pair] : static_cast<int32_t>(rank_of_pair);
    if (id == MergeTables::kTied) [[unlikely]]
      id = static_cast<int32_t>(Simd::rank(ties_, MergeTables::pair_of(symbols_[at], symbols_[gone])));
    symbols_[at] = id;
    steps_[gone] = kNone;
    const uint32_t left = rank(symbols_[previous], id), right = rank(id, symbols_[next]);
    steps_[at] = step(right, at);
    if (previous >= 0) steps_[previous] = step(left, static_cast<size_t>(previous));
  }

  const MergeTables& tables_;
  MergeTables ties_;  // has the ties as its buckets, for Simd::rank()
  size_t n_, rounded_;
  uint64_t alive_;
  alignas(64) int32_t steps_[kMostSymbols];
  int32_t around_[kMostSymbols + 2];
  int32_t* const symbols_ = around_ + 1;
};

template <class Simd>
size_t merge_one_piece(const MergeTables& tables, const uint8_t* bytes, int32_t* ids, size_t n) {
  if (n < 2) return n;
  OnePiece<Simd> piece(tables, ids, n);
  for (size_t i = 0; i + 1 < n; ++i)
    piece.start(i, bytes ? tables.byte_ranks[size_t{bytes[i]} << 8 | bytes[i + 1]] : piece.rank_after(i));
  piece.run();
  return piece.take(ids);
}

}  // namespace
}  // namespace megalith

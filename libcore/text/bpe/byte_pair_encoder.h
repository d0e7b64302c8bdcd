#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/shared_array.h"
#include "libcore/text/bpe/character_ids.h"
#include "libcore/text/bpe/long_merge.h"
#include "libcore/text/bpe/piece_merge.h"
#include "libcore/text/identity_hash.h"

namespace megalith {

/// What a merge's rank is: its position in the list (merges.txt); the id of the joined token, so that all
/// merges that give one token have the same rank (tiktoken); or a given number, so that merges that give
/// different tokens may share a rank (SentencePiece's scores).
enum class MergeRanks : uint8_t { kOrder, kToken, kGiven };

/// Byte-pair encoding of one pretoken. Starts with one id per byte, then repeatedly joins the pair of
/// neighbours with the lowest rank (the leftmost of equal ones) until no pair has a rank. Const and
/// thread-safe.
class BytePairEncoder {
 public:
  using Merge = TokenMerge;
  static constexpr size_t kWindow = 4096;  // number of ids of a long piece that are merged at a time
  /// `merges` are in the order of their rank, or have the ranks `given` (MergeRanks::kGiven), from 0 without
  /// gaps. If a pair appears twice, the later merge counts, as in Hugging Face tokenizers. Throws kData if an
  /// id or the number of merges is beyond what the tables hold (2^21 ids, 2^22 merges).
  BytePairEncoder(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                  MergeRanks ranks = MergeRanks::kOrder,
                  std::optional<CharacterIds> characters = std::nullopt,  // used instead of byte_ids
                  std::span<const uint32_t> given = {});

  /// The tables in which the encoder looks up merges.
  using Bucket = MergeTables::Bucket;
  struct Arrays {
    SharedArray<Bucket> buckets;       // a full bucket continues in the next
    SharedArray<int32_t> merged;       // id of the joined token by rank; empty: the rank is the id
    SharedArray<uint32_t> byte_ranks;  // rank of two bytes, at first * 256 + second
    SharedArray<Bucket> ties;          // see MergeTables; empty: there are none
  };
  const Arrays& arrays() const { return arrays_; }
  const std::optional<CharacterIds>& characters() const { return characters_; }
  /// Reuses the arrays of another instance with the same byte_ids and characters, such as those of a mapped
  /// cache file.
  BytePairEncoder(const std::array<int32_t, 256>& byte_ids, Arrays arrays,
                  std::optional<CharacterIds> characters = std::nullopt);
  /// Whether these arrays can be used: all their ids are below `ids`, so that none is an index beyond the end
  /// of a table.
  static bool fit(const Arrays& arrays, size_t ids);

  ~BytePairEncoder();
  BytePairEncoder(BytePairEncoder&&) noexcept;

  /// Adds the merges to `hash`, in the order of their ranks.
  void add_to(IdentityHash& hash) const;

  /// Replaces the contents of `ids` by the ids of `bytes`.
  void encode(std::string_view bytes, std::vector<int32_t>& ids) const;

  /// Passes the ids of `bytes` to `take` in order, a part at a time. However long `bytes` is, this needs
  /// memory for a few windows only (see LongMerge), unless a token is made of more than 4096 ids.
  using TakeIds = LongMerge::TakeIds;
  void encode_long(std::string_view bytes, const TakeIds& take, size_t window = kWindow) const;

  /// Fills out[i] with the ids of keys[i], each the key of a short piece. Much faster than calling encode()
  /// for each.
  void encode_short(std::span<const PieceKey> keys, MergedPiece* out) const;

 private:
  friend class LongPiece;
  static constexpr uint32_t kNoRank = MergeTables::kNoRank;
  static constexpr int32_t kNobody = MergeTables::kNobody;

  MergeTables tables() const;
  uint32_t rank(int32_t left, int32_t right) const;
  template <class Take>
  void each_slot(const Take& take) const;  // calls take(rank, pair) for each merge
  /// All merges, ordered by rank, then by pair.
  std::vector<Merge> merges() const;
  void start(std::string_view bytes, std::vector<int32_t>& ids) const;  // appends the ids before any merge
  bool is_ascii(const PieceKey& key) const;
  void encode_characters(std::span<const PieceKey> keys, MergedPiece* out) const;
  const TokenReach& reach() const;

  // With characters_: the ids of ASCII characters, so that pieces of these are merged like pieces of bytes; 0
  // for other bytes and for characters without an id.
  std::array<int32_t, 256> byte_ids_;
  std::optional<CharacterIds> characters_;
  Arrays arrays_;
  int shift_;
  PieceMerging merging_;  // the implementation for this processor
  struct Lazy;            // what the encoder computes when the first long piece needs it
  std::unique_ptr<Lazy> lazy_;
};

/// A long piece that arrives in parts, so that it need not be in memory as a whole; see
/// BytePairEncoder::encode_long. Keeps a reference to `encoder`.
class LongPiece {
 public:
  using TakeIds = BytePairEncoder::TakeIds;
  LongPiece(const BytePairEncoder& encoder, TakeIds take, size_t window = BytePairEncoder::kWindow);

  /// Adds the next part, which must consist of whole characters.
  void add(std::string_view bytes);
  /// Ends the piece: passes on the ids that were held back. Nothing may be added afterwards.
  void finish();

 private:
  const BytePairEncoder& encoder_;
  size_t window_;
  LongMerge merge_;
  CharacterIds::State state_;
};

}  // namespace megalith

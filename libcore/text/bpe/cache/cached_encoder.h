#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/text/bpe/byte_pair_encoder.h"
#include "libcore/text/bpe/cache/piece_cache.h"
#include "libcore/text/bpe/cache/piece_cutter.h"
#include "libcore/text/bpe/cache/piece_lookup.h"
#include "libcore/text/bpe/cache/token_cache.h"
#include "libcore/text/bpe/merge_borders.h"
#include "libcore/text/id_buffer.h"

namespace megalith {

/// A short piece that is a single token, and its id.
struct PieceSeed {
  PieceKey key;
  int64_t id;  // 64 bits, so that no byte is padding: seeds are written to files
};

/// The rules by which a pretoken becomes ids.
struct PieceRules {
  bool cut_in_parts;  // whether pretokens are cut at borders; not for a model of characters
  bool wide;          // whether some ids need more than 16 bits
  BytePairEncoder encoder;
  MergeBorders borders;
  WholeTokenIds whole;  // pretokens that become one token without merging

  /// Replaces `ids` with those of `piece`.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const;
};

/// Encodes pretokens through the token cache that all threads share. Only one thread at a time may use it,
/// since its reader can hold only one guard.
class CachedEncoder {
 public:
  /// Keeps references to `rules` and `memory`, which must have been created with the same `wide`.
  CachedEncoder(const PieceRules& rules, TokenCache& memory);
  ~CachedEncoder();
  CachedEncoder(const CachedEncoder&) = delete;
  CachedEncoder& operator=(const CachedEncoder&) = delete;

  /// An id that stands between pretokens.
  struct Mark {
    /// The byte of the text before which it stands: where a pretoken begins, or the text's end.
    uint32_t at;
    int32_t id;
  };
  /// Appends the ids of the pretokens of `text` that end at `ends` (see FindPretokens), and between them
  /// those of `marks`, which are in order. With marks, ids.width() is 4.
  void encode(std::string_view text, std::span<const uint32_t> ends, IdBuffer& ids,
              std::span<const Mark> marks = {});

  /// Frees memory that an unusually long text took, which an idle encoder would otherwise keep.
  void trim();

 private:
  // The number of pieces whose cache lines are prefetched together. Without a prefetch, each piece would wait
  // for memory.
  static constexpr size_t kGroup = 128;
  static constexpr size_t kBatch = 2048;  // pieces of a batch, whose unknown ones are merged together
  /// The number of earlier unknown pieces with which a new one is compared.
  static constexpr size_t kSideBySide = 16;

  /// A text and the position up to which it is encoded.
  struct Rest {
    std::string_view text;
    std::span<const uint32_t> ends;  // ends of the pieces
    std::span<const Mark> marks;     // those whose ids are not written yet
    size_t next = 0;                 // index in `ends` of the piece at `begin`
    uint32_t begin = 0;
  };
  /// The next piece of the batch to be written, and the number of slow pieces before it.
  struct Written {
    size_t piece = 0, slow = 0;
  };
  template <class Stored, class Id>
  void encode_all(Rest rest, IdBuffer& ids);
  template <class Stored, class Id>
  Id* encode_batch(Rest& rest, Id* out);
  template <class Stored, class Id>
  Id* write_pieces(std::string_view text, size_t stop, Written& written, Id* out);
  void take_group(Rest& rest);
  void note_unknown(size_t slow);
  void merge_unknown();
  std::span<const int32_t> ids_of_slow(std::string_view text, size_t slow);

  const PieceRules& rules_;
  PieceCutter cutter_;
  TokenCache& memory_;
  Epochs::Reader& reader_;
  TokenCacheWriter cache_writer_;
  PieceLookup lookup_ = piece_lookup(chosen_isa());
  std::vector<int32_t> one_;  // ids of one pretoken

  // The pieces of the batch, which follow one another in the text.
  size_t count_ = 0;
  std::array<PieceKey, kBatch> keys_;
  std::array<const PieceTable::Entry*, kBatch> entries_;
  std::array<uint32_t, kBatch + 1> begins_;
  // The slow pieces: those whose ids are not in an entry. unknown_of_: for each of them its index in
  // `unknown_`, or kKnown if it is not there. far_: where the ids of a short slow piece are, if it is kKnown.
  static constexpr uint16_t kKnown = UINT16_MAX;
  size_t slow_count_ = 0;
  std::array<uint16_t, kBatch + kTogether> slow_;
  std::array<uint16_t, kBatch> unknown_of_;
  std::array<LongPieceCache::Ref, kBatch> far_;
  size_t unknown_count_ = 0;
  std::array<PieceKey, kBatch> unknown_;
  std::array<MergedPiece, kBatch> merged_;
};

}  // namespace megalith

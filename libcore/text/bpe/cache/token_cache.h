#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/text/bpe/byte_pair_encoder.h"
#include "libcore/text/bpe/cache/epochs.h"
#include "libcore/text/bpe/cache/piece_cache.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// The token cache: what all threads together know of pieces. They share one, because a cache for each thread
/// learns every word once a thread: with two threads 5 % (English) and 7 % (many languages) more processor
/// time, and 18 to 20 MiB more memory.
struct TokenCache {
  struct Size {
    int table_bits;     // lines of a PieceTable
    size_t long_bytes;  // of a LongPieceCache
    /// For `bytes` bytes of text, and room for `seeds` short pieces that are known from the beginning: 22 MiB
    /// up to 100 MB, 46 MiB from 200 MB on; smaller for small texts, because memory that is touched for the
    /// first time costs more than what it saves.
    static Size for_text(uint64_t bytes, size_t seeds);
  };
  /// `wide`: there are ids beyond 16 bits.
  TokenCache(Size size, bool wide) : table(size.table_bits, wide), longer(size.long_bytes, epochs) {}

  Epochs epochs;
  PieceTable table;
  LongPieceCache longer;
};

/// Adds what one thread learns of short pieces to the shared table. An entry that has to give way is replaced
/// only after a grace period, because other threads may still read it.
class TokenCacheWriter {
 public:
  explicit TokenCacheWriter(TokenCache& memory) : memory_(memory) {}
  ~TokenCacheWriter();
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;

  /// ids[i] are those of keys[i]. Not while this thread has a ReadGuard.
  void keep(std::span<const PieceKey> keys, const MergedPiece* ids);
  /// Adds what waits, if it may be added now.
  void fill();

 private:
  struct Waiting {
    PieceTable::TakenEntry taken;
    PieceKey key;
    PieceTable::Packed ids;
  };
  void keep(const PieceKey& key, std::span<const int32_t> ids, bool may_push_out);

  TokenCache& memory_;
  std::vector<Waiting> waiting_;
  Epochs::GracePeriod grace_;
};

}  // namespace megalith

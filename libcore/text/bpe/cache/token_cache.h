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

/// The token cache: the ids of pieces that any thread has encoded. With a separate cache for each thread,
/// every thread would have to encode every word itself; for two threads this took 5 % (English) and 7 % (many
/// languages) more processor time, and 18 to 20 MiB more memory.
struct TokenCache {
  struct Size {
    int table_bits;     // the PieceTable has 2^table_bits lines
    size_t long_bytes;  // bytes of the LongPieceCache
    /// The size for encoding `bytes` bytes of text, with room for `seeds` short pieces that are known from
    /// the start: 22 MiB up to 100 MB of text, 46 MiB from 200 MB on. Small texts get less, since touching
    /// memory for the first time would cost more than it saves.
    static Size for_text(uint64_t bytes, size_t seeds);
    /// Whether adding `seeds` pieces at the start saves time. A small text has few of them.
    static bool pays(uint64_t bytes, size_t seeds);
  };
  /// `wide`: some ids need more than 16 bits.
  TokenCache(Size size, bool wide) : table(size.table_bits, wide), longer(size.long_bytes, epochs) {}

  Epochs epochs;
  PieceTable table;
  LongPieceCache longer;
};

/// Adds the short pieces that one thread has encoded to the shared table. An evicted entry is replaced only
/// after a grace period: other threads may still read it.
class TokenCacheWriter {
 public:
  explicit TokenCacheWriter(TokenCache& memory) : memory_(memory) {}
  ~TokenCacheWriter();
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;

  /// Adds pieces; ids[i] are the ids of keys[i]. Must not be called while this thread has a ReadGuard.
  void keep(std::span<const PieceKey> keys, const MergedPiece* ids);
  /// Adds the pieces that wait for a grace period, if it is over.
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

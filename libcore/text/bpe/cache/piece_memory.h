#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/text/bpe/byte_pair_encoder.h"
#include "libcore/text/bpe/cache/piece_cache.h"
#include "libcore/text/bpe/cache/piece_readers.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// What all threads together know of pieces.
struct PieceMemory {
  struct Size {
    int table_bits;     // lines of a PieceTable
    size_t long_bytes;  // of a LongPieceCache
    /// For `bytes` bytes of text, and room for `seeds` short pieces that are known from the beginning: 22 MiB
    /// up to 100 MB, 46 MiB from 200 MB on.
    static Size for_text(uint64_t bytes, size_t seeds);
  };
  /// `wide`: there are ids beyond 16 bits.
  PieceMemory(Size size, bool wide) : table(size.table_bits, wide), longer(size.long_bytes, readers) {}

  PieceReaders readers;
  PieceTable table;
  LongPieceCache longer;
};

/// Adds what one thread learns of short pieces. What pushes out others is added later where threads may still
/// see these.
class PieceKeeper {
 public:
  explicit PieceKeeper(PieceMemory& memory) : memory_(memory) {}
  ~PieceKeeper();
  PieceKeeper(const PieceKeeper&) = delete;
  PieceKeeper& operator=(const PieceKeeper&) = delete;

  /// ids[i]: of keys[i]. Not in a turn of this thread's reader.
  void keep(std::span<const PieceKey> keys, const MergedPiece* ids);
  /// Adds what waits, if it may be added now.
  void fill();

 private:
  struct Waiting {
    PieceTable::Place place;
    PieceKey key;
    PieceTable::Packed ids;
  };
  void keep(const PieceKey& key, std::span<const int32_t> ids, bool may_push_out);

  PieceMemory& memory_;
  std::vector<Waiting> waiting_;
  PieceReaders::Grace grace_;
};

}  // namespace megalith

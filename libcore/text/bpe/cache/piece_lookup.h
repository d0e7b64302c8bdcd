#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/base/machine/isa.h"
#include "libcore/text/bpe/cache/piece_cache.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// The number of pieces that a kernel handles at a time.
constexpr size_t kTogether = 8;

/// Consecutive pieces of a text.
struct PieceRun {
  std::string_view text;
  uint32_t begin;                  // beginning of the first piece
  std::span<const uint32_t> ends;  // end of each piece
};

/// The arrays to which a kernel writes the beginning, key and line of each piece of a run, in order.
struct PiecePlaces {
  uint32_t* begins;
  PieceKey* keys;
  const PieceTable::Line** lines;
};

/// Finds the keys of the first pieces of `run` and their lines in `table`, and prefetches the lines. Stops
/// before a piece of more than PieceKey::kLongest bytes, and where fewer than kTogether pieces are left or
/// fewer than 16 bytes follow the beginning of the last of them. Returns how many pieces were taken. The rest
/// of `out`, up to run.ends.size(), is undefined.
using TakeKeys = size_t (*)(const PieceTable& table, const PieceRun& run, const PiecePlaces& out);
size_t take_keys_avx512(const PieceTable& table, const PieceRun& run, const PiecePlaces& out);

/// The keys of the pieces to look up, and their lines.
struct PieceQueries {
  const PieceKey* keys;
  const PieceTable::Line* const* lines;
  size_t count;
};
/// Where a kernel writes what it finds: entries[i] is the entry of the i-th piece. If that piece has no
/// entry, entries[i] is some entry of its line, and `first` + i is appended to `unknown`.
struct PieceAnswers {
  const PieceTable::Entry** entries;
  uint16_t* unknown;  // room for kTogether more than `count`
  uint16_t first;
};
/// Looks up entries. Returns how many numbers were appended to `unknown`.
using FindEntries = size_t (*)(const PieceQueries& queries, const PieceAnswers& answers);
size_t find_entries_generic(const PieceQueries& queries, const PieceAnswers& answers);
size_t find_entries_avx512(const PieceQueries& queries, const PieceAnswers& answers);

struct PieceLookup {
  TakeKeys take_keys;  // null if no kernel is faster than one piece at a time
  FindEntries find_entries;
};
/// The kernels for `isa`.
PieceLookup piece_lookup(Isa isa);

}  // namespace megalith

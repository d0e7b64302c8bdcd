#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/base/machine/isa.h"
#include "libcore/text/bpe/cache/piece_cache.h"
#include "libcore/text/bpe/piece_key.h"

namespace megalith {

/// Pieces that a kernel looks at side by side.
constexpr size_t kTogether = 8;

/// Pieces that follow each other in a text.
struct PieceRun {
  std::string_view text;
  uint32_t begin;                  // of the first one
  std::span<const uint32_t> ends;  // of each
};

/// Where what is known of each piece of a run is written, from the first one on.
struct PiecePlaces {
  uint32_t* begins;
  PieceKey* keys;
  const PieceTable::Line** lines;
};

/// Finds the keys of the first pieces of `run` and their lines of `table`, and asks for the lines early, so
/// that they are in the caches when they are read. Ends before a piece of more than PieceKey::kLongest bytes,
/// and where fewer than kTogether pieces, or than 16 bytes from the last of them on, are left; returns how
/// many were taken. What is after them in `out`, up to run.ends.size(), is undefined.
using TakeKeys = size_t (*)(const PieceTable& table, const PieceRun& run, const PiecePlaces& out);
size_t take_keys_avx512(const PieceTable& table, const PieceRun& run, const PiecePlaces& out);

/// Pieces that are looked for, and where.
struct PieceQueries {
  const PieceKey* keys;
  const PieceTable::Line* const* lines;
  size_t count;
};
/// entries[i]: of the i-th piece, some entry of its line when there is none. Of those without one, `first` +
/// i is added to `unknown`.
struct PieceAnswers {
  const PieceTable::Entry** entries;
  uint16_t* unknown;  // room for kTogether more than `count`
  uint16_t first;
};
/// Returns how many were added to `unknown`.
using FindEntries = size_t (*)(const PieceQueries& queries, const PieceAnswers& answers);
size_t find_entries_generic(const PieceQueries& queries, const PieceAnswers& answers);
size_t find_entries_avx512(const PieceQueries& queries, const PieceAnswers& answers);

struct PieceLookup {
  TakeKeys take_keys;  // null where none is faster than one at a time
  FindEntries find_entries;
};
/// Those for `isa`.
PieceLookup piece_lookup(Isa isa);

}  // namespace megalith

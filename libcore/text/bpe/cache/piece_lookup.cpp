#include "libcore/text/bpe/cache/piece_lookup.h"

namespace megalith {

/// Has no branch that depends on what is found.
size_t find_entries_generic(const PieceQueries& queries, const PieceAnswers& answers) {
  size_t unknown = 0;
  for (size_t i = 0; i < queries.count; ++i) {
    const PieceKey& key = queries.keys[i];
    const PieceTable::Entry* const entries = queries.lines[i]->entries.data();
    const bool first = entries[0].is(key), second = entries[1].is(key);
    answers.entries[i] = entries + second;
    answers.unknown[unknown] = static_cast<uint16_t>(answers.first + i);
    unknown += !(first | second);
  }
  return unknown;
}

PieceLookup piece_lookup(Isa isa) {
/// Without vectors: the thread sanitizer does not know that a vector load is a single access (see
/// PieceTable).
#ifdef __SANITIZE_THREAD__
  const FindEntries find_entries = find_entries_generic;
#else
  const auto find_entries = select<FindEntries>(
      isa, {.generic = find_entries_generic, .avx512 = MEGALITH_IF_SIMD(find_entries_avx512)});
#endif
  return {select<TakeKeys>(isa, {.generic = nullptr, .avx512 = MEGALITH_IF_SIMD(take_keys_avx512)}),
          find_entries};
}

}  // namespace megalith

#include "libcore/text/bpe/cache/piece_lookup.h"

#include "libcore/base/isa.h"

namespace megalith {

/// Without a branch that depends on what is found.
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

PieceLookup piece_lookup() {
#ifdef __SANITIZE_THREAD__  // which does not know that a vector load is one (see PieceTable)
  return {chosen_isa() >= Isa::kAvx512 ? take_keys_avx512 : nullptr, find_entries_generic};
#endif
  if (chosen_isa() >= Isa::kAvx512) return {take_keys_avx512, find_entries_avx512};
  return {nullptr, find_entries_generic};
}

}  // namespace megalith

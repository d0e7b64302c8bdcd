#include "libcore/text/piece_lookup.h"

#include "libcore/base/isa.h"

namespace megalith {

/// Without a branch that depends on what is found.
size_t find_entries_generic(const PieceQueries& queries, const PieceAnswers& answers) {
  size_t unknown = 0;
  for (size_t i = 0; i < queries.count; ++i) {
    const PieceKey& key = queries.keys[i];
    const PieceTable::Entry* const entries = queries.lines[i]->entries.data();
    const auto differs = [&](const PieceTable::Entry& entry) {  // operator== might branch
      return (entry.key.low ^ key.low) | (entry.key.high ^ key.high);
    };
    const uint64_t first_differs = differs(entries[0]), second_differs = differs(entries[1]);
    answers.entries[i] = entries + (second_differs == 0);
    answers.unknown[unknown] = static_cast<uint16_t>(answers.first + i);
    unknown += ((second_differs != 0) & (first_differs != 0));
  }
  return unknown;
}

PieceLookup piece_lookup() {
  if (chosen_isa() >= Isa::kAvx512) return {take_keys_avx512, find_entries_avx512};
  return {nullptr, find_entries_generic};
}

}  // namespace megalith

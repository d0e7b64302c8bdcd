#include "libcore/text/bpe/cache/token_cache.h"

#include <algorithm>
#include <bit>

namespace megalith {

/// With twice as many lines, a text of `bytes` bytes takes as long or longer: touching memory for the first
/// time costs more than encoding evicted pieces again (English, code and many languages, 4 MB to 1 GB).
/// Touching costs most, 2 ms per MiB, in a virtual machine whose free memory goes back to its host. There, a
/// table of 16 MiB instead of 32 made files of 130 MB 7 % faster and files of 1 GB 5 % slower.
TokenCache::Size TokenCache::Size::for_text(uint64_t bytes, size_t seeds) {
  constexpr uint64_t kTextOfLine = 384;
  constexpr size_t kMinBits = 17, kMaxBits = 19, kBitsWithoutSeeds = 14;
  const bool seeded = pays(bytes, seeds);
  const auto for_text = static_cast<size_t>(std::bit_width(std::max(bytes / kTextOfLine, uint64_t{1}))) - 1;
  const auto for_seeds = static_cast<size_t>(seeded ? std::bit_width(seeds) : 0);
  const size_t bits =
      std::clamp(std::max(for_text, for_seeds), seeded ? kMinBits : kBitsWithoutSeeds, kMaxBits);
  return {.table_bits = static_cast<int>(bits), .long_bytes = size_t{12} << 20};
}

/// Adding a seed takes as long as merging the new words of some bytes of text.
bool TokenCache::Size::pays(uint64_t bytes, size_t seeds) {
  constexpr uint64_t kTextOfSeed = 4;
  return bytes / kTextOfSeed >= seeds;
}

TokenCacheWriter::~TokenCacheWriter() {
  for (const Waiting& waiting : waiting_) PieceTable::put_back(waiting.taken);
}

void TokenCacheWriter::keep(std::span<const PieceKey> keys, const MergedPiece* ids) {
  fill();
  const bool may_push_out = waiting_.empty();
  for (size_t i = 0; i < keys.size(); ++i)
    keep(keys[i], std::span(ids[i].ids).first(ids[i].count), may_push_out);
  if (!may_push_out || waiting_.empty()) return;
  grace_ = memory_.epochs.begin_grace_period();
  fill();
}

void TokenCacheWriter::keep(const PieceKey& key, std::span<const int32_t> ids, bool may_push_out) {
  PieceTable& table = memory_.table;
  Waiting added{.taken = {}, .key = key, .ids = {}};
  if (ids.size() <= table.max_ids()) {
    added.ids = table.pack(ids);
  } else {
    if (table.has(PieceTable::far(key))) return;  // another thread has already added it
    const LongPieceCache::Ref ref = memory_.longer.append(ids);
    if (ref.at == 0) return;
    added.key = PieceTable::far(key);
    added.ids = PieceTable::pack(ref);
  }
  if (table.add(added.key, added.ids) || !may_push_out) return;
  waiting_.emplace_back();  // may throw, so it comes before an entry is taken out
  added.taken = table.take_out(key);
  if (added.taken.entry)
    waiting_.back() = added;
  else
    waiting_.pop_back();
}

void TokenCacheWriter::fill() {
  if (waiting_.empty() || !grace_.over()) return;
  for (const Waiting& waiting : waiting_) PieceTable::fill(*waiting.taken.entry, waiting.key, waiting.ids);
  waiting_.clear();
}

}  // namespace megalith

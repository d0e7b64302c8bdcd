#include "libcore/text/piece_memory.h"

#include <thread>

namespace megalith {

/// Entries that were taken out would be nobody's.
PieceKeeper::~PieceKeeper() {
  for (fill(); !waiting_.empty(); fill()) std::this_thread::yield();
}

void PieceKeeper::keep(std::span<const PieceKey> keys, const MergedPiece* ids) {
  fill();
  const bool may_push_out = waiting_.empty();
  PieceTable& table = memory_.table;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto all = std::span<const int32_t>(ids[i].ids).first(ids[i].count);
    const bool near = all.size() <= table.most_ids();
    const PieceKey key = near ? keys[i] : PieceTable::far(keys[i]);
    const PieceTable::Packed packed = near ? table.pack(all) : PieceTable::pack(memory_.longer.append(all));
    if (table.add(key, packed) || !may_push_out) continue;
    if (PieceTable::Entry* const entry = table.take_out(key)) waiting_.push_back({entry, key, packed});
  }
  if (!may_push_out || waiting_.empty()) return;
  memory_.readers.ask(grace_);
  fill();
}

void PieceKeeper::fill() {
  if (!grace_.over()) return;
  for (const Waiting& waiting : waiting_) PieceTable::fill(*waiting.entry, waiting.key, waiting.ids);
  waiting_.clear();
}

}  // namespace megalith

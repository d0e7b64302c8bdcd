#include "libcore/text/piece_memory.h"

namespace megalith {

PieceKeeper::~PieceKeeper() {
  for (const Waiting& waiting : waiting_) PieceTable::put_back(waiting.place);
}

void PieceKeeper::keep(std::span<const PieceKey> keys, const MergedPiece* ids) {
  fill();
  const bool may_push_out = waiting_.empty();
  for (size_t i = 0; i < keys.size(); ++i)
    keep(keys[i], std::span(ids[i].ids).first(ids[i].count), may_push_out);
  if (!may_push_out || waiting_.empty()) return;
  grace_ = memory_.readers.ask();
  fill();
}

void PieceKeeper::keep(const PieceKey& key, std::span<const int32_t> ids, bool may_push_out) {
  PieceTable& table = memory_.table;
  Waiting added{.place = {}, .key = key, .ids = {}};
  if (ids.size() <= table.most_ids()) {
    added.ids = table.pack(ids);
  } else {
    if (table.find_far(key)) return;  // by another thread
    const LongPieceCache::Ref ref = memory_.longer.append(ids);
    if (ref.at == 0) return;
    added.key = PieceTable::far(key);
    added.ids = PieceTable::pack(ref);
  }
  if (table.add(added.key, added.ids) || !may_push_out) return;
  waiting_.emplace_back();  // before something is taken out, for this may throw
  added.place = table.take_out(key);
  if (added.place.entry)
    waiting_.back() = added;
  else
    waiting_.pop_back();
}

void PieceKeeper::fill() {
  if (waiting_.empty() || !grace_.over()) return;
  for (const Waiting& waiting : waiting_) PieceTable::fill(*waiting.place.entry, waiting.key, waiting.ids);
  waiting_.clear();
}

}  // namespace megalith

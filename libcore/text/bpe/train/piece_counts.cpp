#include "libcore/text/bpe/train/piece_counts.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace megalith {

constexpr size_t kBlock = size_t{1} << 20;

size_t PieceCounts::place(std::string_view piece, size_t hash) const {
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].times > 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].hash == hash && std::string_view(slots_[at].text, slots_[at].bytes) == piece) break;
  return at;
}

const char* PieceCounts::keep(std::string_view piece) {
  if (piece.size() > block_left_) {
    block_left_ = std::max(kBlock, piece.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_left_));
    block_at_ = blocks_.back().get();
  }
  std::memcpy(block_at_, piece.data(), piece.size());
  block_left_ -= piece.size();
  block_at_ += piece.size();
  return block_at_ - piece.size();
}

void PieceCounts::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.times > 0) slots_[place({slot.text, slot.bytes}, slot.hash)] = slot;
}

void PieceCounts::add(std::string_view piece, int64_t times) {
  const size_t hash = std::hash<std::string_view>{}(piece);
  Slot* slot = &slots_[place(piece, hash)];
  if (slot->times > 0) {
    slot->times += times;
    return;
  }
  if (++size_ * 2 > slots_.size()) {
    grow();
    slot = &slots_[place(piece, hash)];
  }
  *slot = {keep(piece), piece.size(), hash, times};
}

void PieceCounts::add(const PieceCounts& other) {
  other.for_each([&](std::string_view piece, int64_t times) { add(piece, times); });
}

int64_t PieceCounts::count(std::string_view piece) const {
  return slots_[place(piece, std::hash<std::string_view>{}(piece))].times;
}

}  // namespace megalith

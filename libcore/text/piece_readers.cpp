#include "libcore/text/piece_readers.h"

namespace megalith {

bool PieceReaders::Grace::over() {
  std::erase_if(begun_, [](const auto& turn) {
    return turn.first->turns_.load(std::memory_order_acquire) != turn.second;
  });
  return begun_.empty();
}

PieceReaders::Reader& PieceReaders::join() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return readers_.emplace_back();
  Reader& reader = *free_.back();
  free_.pop_back();
  return reader;
}

void PieceReaders::leave(Reader& reader) {
  const std::lock_guard lock(mutex_);
  free_.push_back(&reader);
}

void PieceReaders::ask(Grace& grace) const {
  const std::lock_guard lock(mutex_);
  for (const Reader& reader : readers_)
    if (const uint64_t turns = reader.turns_.load(); turns % 2 != 0)
      grace.begun_.emplace_back(&reader, turns);
}

}  // namespace megalith

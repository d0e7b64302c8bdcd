#include "libcore/text/bpe/cache/piece_readers.h"

#include <utility>

namespace megalith {

void PieceReaders::Grace::look_at_some() {
  for (; next_ && count_ < kAtOnce; next_ = next_->next_.get())
    if (const uint64_t step = next_->steps_.load(); step % 2 == 1) begun_[count_++] = {next_, step};
}

bool PieceReaders::Grace::over() {
  while (count_ > 0) {
    const Begun& turn = begun_[count_ - 1];
    if (turn.reader->steps_.load(std::memory_order_acquire) == turn.step) return false;
    --count_;
    if (count_ == 0) look_at_some();
  }
  return true;
}

PieceReaders::~PieceReaders() {
  std::unique_ptr<Reader> reader(last_.load());
  while (reader) reader = std::move(reader->next_);  // one after the other, however many
}

PieceReaders::Reader& PieceReaders::join() {
  const std::lock_guard lock(mutex_);
  for (Reader* reader = last_; reader; reader = reader->next_.get())
    if (std::exchange(reader->free_, false)) return *reader;
  auto reader = std::make_unique<Reader>();
  reader->next_.reset(last_.load());
  last_ = reader.get();
  return *reader.release();
}

void PieceReaders::leave(Reader& reader) {
  const std::lock_guard lock(mutex_);
  reader.free_ = true;
}

PieceReaders::Grace PieceReaders::ask() const {
  return Grace(last_.load());
}

}  // namespace megalith

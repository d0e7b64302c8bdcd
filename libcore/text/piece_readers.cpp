#include "libcore/text/piece_readers.h"

#include <utility>

namespace megalith {

bool PieceReaders::Grace::over() {
  for (; next_; next_ = next_->next_.get()) {
    const uint64_t asked = next_->asked_.load(std::memory_order_acquire);
    if (asked != 0 && asked < number_) return false;
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
  Grace grace;
  grace.number_ = asked_.fetch_add(1) + 1;
  grace.next_ = last_.load();
  return grace;
}

}  // namespace megalith

#include "libcore/text/bpe/cache/epochs.h"

#include <utility>

namespace megalith {

void Epochs::GracePeriod::look_at_some() {
  for (; next_ && count_ < kAtOnce; next_ = next_->next_.get())
    if (const uint64_t step = next_->steps_.load(); step % 2 == 1) alive_[count_++] = {next_, step};
}

bool Epochs::GracePeriod::over() {
  while (count_ > 0) {
    const Alive& guard = alive_[count_ - 1];
    if (guard.reader->steps_.load(std::memory_order_acquire) == guard.step) return false;
    --count_;
    if (count_ == 0) look_at_some();
  }
  return true;
}

Epochs::~Epochs() {
  std::unique_ptr<Reader> reader(last_.load());
  while (reader) reader = std::move(reader->next_);  // in a loop, not recursively: there may be many
}

Epochs::Reader& Epochs::join() {
  const std::lock_guard lock(mutex_);
  for (Reader* reader = last_; reader; reader = reader->next_.get())
    if (std::exchange(reader->free_, false)) return *reader;
  auto reader = std::make_unique<Reader>();
  reader->next_.reset(last_.load());
  last_ = reader.get();
  return *reader.release();
}

void Epochs::leave(Reader& reader) {
  const std::lock_guard lock(mutex_);
  reader.free_ = true;
}

Epochs::GracePeriod Epochs::begin_grace_period() const {
  return GracePeriod(last_.load());
}

}  // namespace megalith

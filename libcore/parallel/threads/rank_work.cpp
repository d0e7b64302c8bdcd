#include "libcore/parallel/threads/rank_work.h"

#include <cstring>

#include "libcore/ops/backend/shared_device.h"

namespace megalith {

void RankWork::copy(const View& to, const ConstView& from) const {
  if (to.bytes() == 0 || to.data == from.data) return;
  if (stream_ != nullptr)
    stream_->copy(to, from);
  else
    std::memcpy(to.data, from.data, to.bytes());
}

void RankWork::reduce(const SliceReduction& slice) const {
  if (stream_ == nullptr) return reduce_slice(slice);
  if (slice.elements == 0) return;
  reduce_on_cuda(*stream_, {.dtype = slice.dtype,
                            .max = slice.reduce == Reduce::kMax,
                            .elements = slice.elements,
                            .from = slice.from,
                            .to = slice.to});
}

void RankWork::wait(const Event& event) const {
  if (stream_ != nullptr) stream_->wait(event);
}

Event RankWork::done() const {
  return stream_ == nullptr ? Event{} : stream_->record();
}

}  // namespace megalith

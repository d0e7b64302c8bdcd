#include "libcore/train/grad_buffer.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/model/ctx.h"
#include "libcore/ops/backend.h"

namespace megalith {

GradBuffer::GradBuffer(const ParamStore& store, Communicator& data, Stream& stream)
    : grads_(store.grads()), data_(data), arena_(make_arena(stream.backend(), "gradient norm", 256)) {
  if (!grads_) fail(ErrorKind::kInternal, "gradient buffer: the parameters were placed without gradients");
  sum_ = arena_.make(DType::kF64, {1}, "sum of squares");
}

void GradBuffer::zero(Stream& stream) {
  stream.fill(grads_, 0);
}

void GradBuffer::reduce(Stream& stream) {
  data_.all_reduce(stream, grads_, Reduce::kSum);
}

double GradBuffer::norm(Stream& stream) {
  stream.fill(sum_, 0);
  run(stream, SumSquares{.out = sum_, .x = grads_});
  double sum = 0;
  stream.to_host(&sum, sum_);
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace megalith

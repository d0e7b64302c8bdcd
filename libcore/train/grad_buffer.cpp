#include "libcore/train/grad_buffer.h"

#include "libcore/base/error.h"
#include "libcore/ops/backend.h"

namespace megalith {

GradBuffer::GradBuffer(const ParamStore& store, Communicator& data) : grads_(store.grads()), data_(data) {
  if (!grads_) fail(ErrorKind::kInternal, "gradient buffer: the parameters were placed without gradients");
}

void GradBuffer::zero(Stream& stream) {
  stream.fill(grads_, 0);
}

void GradBuffer::reduce(Stream& stream) {
  data_.all_reduce(stream, grads_, Reduce::kSum);
}

void GradBuffer::add_squares(Stream& stream, View sum) const {
  run(stream, SumSquares{.out = sum, .x = grads_});
}

}  // namespace megalith

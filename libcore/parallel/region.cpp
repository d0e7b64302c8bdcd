#include "libcore/parallel/region.h"

#include "libcore/base/error.h"
#include "libcore/tensor/span_log.h"

namespace megalith {

ConstView Region::enter(Stream& stream, Arena& arena, ConstView x) const {
  return gather(stream, arena, x);
}

View Region::enter_grad(Stream& stream, Arena& arena, View dx) const {
  return sum(stream, arena, dx);
}

View Region::leave(Stream& stream, Arena& arena, View partial) const {
  return sum(stream, arena, partial);
}

ConstView Region::leave_grad(Stream& stream, Arena& arena, ConstView dy) const {
  return gather(stream, arena, dy);
}

int64_t Region::rows_outside(int64_t s) const {
  if (!sequence()) return s;
  if (s % size() != 0)
    fail(ErrorKind::kInternal, "a sequence of ", s, " cannot be sharded over ", size(),
         " tensor-parallel ranks");
  return s / size();
}

ConstView Region::gather(Stream& stream, Arena& arena, ConstView x) const {
  if (!sequence()) return x;
  Shape whole = x.shape;
  whole[0] *= size();
  View out = arena.make(x.dtype, whole, "gathered sequence");
  const StreamSpan span(stream, "tensor all_gather");
  tensor_->all_gather(stream, out, x);
  return out;
}

View Region::sum(Stream& stream, Arena& arena, View partial) const {
  if (size() == 1) return partial;
  const StreamSpan span(stream, sequence() ? "tensor reduce_scatter" : "tensor all_reduce");
  if (!sequence()) {
    tensor_->all_reduce(stream, partial, Reduce::kSum);
    return partial;
  }
  Shape part = partial.shape;
  part[0] = rows_outside(part[0]);
  View out = arena.make(partial.dtype, part, "scattered sequence");
  tensor_->reduce_scatter(stream, out, partial, Reduce::kSum);
  return out;
}

}  // namespace megalith

#include "libcore/parallel/context_region.h"

#include "libcore/base/error.h"
#include "libcore/tensor/span_log.h"

namespace megalith {
namespace {

View part_of(const View& half, const Communicator& group) {
  const int64_t rows = half.shape[0] / group.size();
  return half.rows(group.rank() * rows, (group.rank() + 1) * rows);
}

}  // namespace

RowPositions context_rows(int rank, int size, int64_t rows) {
  if (size == 1) return {};
  if (rows % 2 != 0)
    fail(ErrorKind::kInternal, rows, " rows of a sequence on each of ", size,
         " context ranks are not two chunks");
  const int64_t chunk = rows / 2;
  return {.first = rank * chunk, .split = chunk, .jump = 2 * (size - 1 - int64_t{rank}) * chunk};
}

ContextRegion::ContextRegion(Communicator& ascending, Communicator& descending)
    : ascending_(&ascending), descending_(&descending) {
  if (ascending.size() != descending.size() || ascending.rank() + descending.rank() + 1 != ascending.size())
    fail(ErrorKind::kInternal, "context groups of ", ascending.size(), " and ", descending.size(),
         " ranks are not each other's reverse");
}

template <class Visit>
void ContextRegion::each_half(View whole, const Visit& visit) const {
  if (size() == 1) return;
  const int64_t rows = whole.shape[0], half = rows / 2;
  if (rows % (2 * int64_t{size()}) != 0)
    fail(ErrorKind::kInternal, "a sequence of ", rows, " cannot be split into 2 * ", size(), " chunks");
  visit(*ascending_, whole.rows(0, half));
  visit(*descending_, whole.rows(half, rows));
}

void ContextRegion::gather(Stream& stream, View whole) const {
  const StreamSpan span(stream, "context all_gather");
  each_half(whole,
            [&](Communicator& group, View half) { group.all_gather(stream, half, part_of(half, group)); });
}

void ContextRegion::sum(Stream& stream, View whole) const {
  const StreamSpan span(stream, "context reduce_scatter");
  each_half(whole, [&](Communicator& group, View half) {
    group.reduce_scatter(stream, part_of(half, group), half, Reduce::kSum);
  });
}

}  // namespace megalith

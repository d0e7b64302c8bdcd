#include "libcore/train/step/grad_buffer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

GradBuffer::GradBuffer(const ParamTable& table, const ParamStore& store, Groups& groups, const Shards& shards,
                       Sharding sharding, Backend& backend)
    : table_(table),
      store_(store),
      groups_(groups),
      shards_(shards),
      sharding_(sharding),
      queue_(backend.make_queue_stream()),
      arena_(make_arena(backend, "gradient shard", bytes(shards, sharding_))),
      drain_(queue_) {
  if (!store.grads())
    fail(ErrorKind::kInternal, "gradient buffer: the parameters were placed without gradients");
  if (sharding_ == Sharding::kGradients)
    shard_ = arena_.make(DType::kF32, {shards.elements()}, "gradient shard");
  find_squares(table);
  queue_.set_spans(&spans_);
}

size_t GradBuffer::bytes(const Shards& shards, Sharding sharding) {
  return sharding == Sharding::kGradients ? Arena::bytes_of(DType::kF32, {shards.elements()}) : 0;
}

// Joins neighbouring parts into one range. A range may include the gaps between its parts, because these are
// zero.
void GradBuffer::find_squares(const ParamTable& table) {
  const bool first_copy = shards_.sharded() || groups_.data->rank() == 0;
  std::vector<OwnRange> ranges;
  for (const OwnedPart& part : owned_parts(table, store_, shards_)) {
    const Param& param = *part.param;
    const bool whole_elsewhere = param.shard_axis == kWhole && groups_.at.tensor > 0;
    if (!first_copy || !param.tie.empty() || whole_elsewhere) continue;
    const int64_t begin = store_.offset(param) + part.first;
    ranges.push_back({begin, begin + part.elements, part.at});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const OwnRange& a, const OwnRange& b) { return a.begin < b.begin; });
  for (const OwnRange& range : ranges) {
    const bool touches = !counted_.empty() && range.begin - counted_.back().end < ParamStore::kAlign &&
                         range.at - counted_.back().at == range.begin - counted_.back().begin;
    if (touches)
      counted_.back().end = range.end;
    else
      counted_.push_back(range);
  }
}

void GradBuffer::zero(Stream& compute) {
  compute.fill(store_.grads(), 0);
  if (shard_) compute.fill(shard_, 0);
  expect_all_units();
}

void GradBuffer::expect_all_units() {
  units_missing_.clear();
  for (const Bucket& bucket : store_.buckets()) units_missing_.push_back(bucket.units);
}

void GradBuffer::begin_backward(bool last) {
  last_ = last;
  if (shard_) expect_all_units();
}

// Waits until no window is being summed: the one for the head's gradients may still hold those of the
// previous microbatch. Necessary only with ZeRO-2, which sums after each microbatch. Its pipelines have one
// stage, so each rank has the head.
void GradBuffer::head_begins(Stream& compute) {
  if (!shard_) return;
  compute.wait(queue_.record());  // waits until both windows are free
  window_free_ = {};
}

void GradBuffer::unit_done(Stream& compute, int unit) {
  if (!reduces_now()) return;
  sum_over_tensor_ranks(compute, unit);
  for (size_t i = 0; i < units_missing_.size(); ++i) {
    const Bucket& bucket = store_.buckets()[i];
    if (unit < bucket.first_unit || unit >= bucket.first_unit + bucket.units) continue;
    if (--units_missing_[i] == 0 && !bucket.alone) reduce(compute, bucket);
  }
}

// Sums those gradients that each tensor-parallel rank has computed only from its own rows of the sequence.
void GradBuffer::sum_over_tensor_ranks(Stream& compute, int unit) const {
  for (const Param& param : table_.all())
    if (param.unit == unit && param.grad_summed_over_tp && param.grad)
      groups_.tensor->all_reduce(compute, param.grad, Reduce::kSum);
}

void GradBuffer::reduce(Stream& compute, const Bucket& bucket) {
  if (groups_.data->size() == 1 && !shard_) return;
  queue_.wait(compute.record());
  reduce_on_queue(bucket);
  if (!shard_) return;
  // The next bucket of the backward pass overwrites the window of the previous bucket, whose reduction must
  // be finished by then.
  if (window_free_.native) compute.wait(window_free_);
  window_free_ = queue_.record();
}

void GradBuffer::reduce_on_queue(const Bucket& bucket) {
  const View whole = store_.grads(bucket);
  const StreamSpan span(queue_, "bucket of units ", bucket.first_unit, " to ",
                        bucket.first_unit + bucket.units - 1, ", ",
                        format_bytes(static_cast<double>(whole.bytes())));
  const OwnRange slice = shards_.slice(bucket);
  const View mine = whole.rows(slice.begin, slice.end);
  if (shards_.sharded())
    groups_.data->reduce_scatter(queue_, mine, whole, Reduce::kSum);
  else
    groups_.data->all_reduce(queue_, whole, Reduce::kSum);
  if (!shard_) return;
  const auto own = std::find_if(shards_.own().begin(), shards_.own().end(), [&](const OwnRange& range) {
    return range.begin == bucket.begin + slice.begin;
  });
  queue_.add(shard_.rows(own->at, own->at + own->elements()), mine);
  queue_.fill(whole, 0);
}

void GradBuffer::finish(Stream& compute) {
  for (const Bucket& bucket : store_.buckets()) {
    if (!bucket.alone) continue;
    if (groups_.embedding->size() > 1)
      groups_.embedding->all_reduce(compute, store_.grads(bucket), Reduce::kSum);
    reduce(compute, bucket);
  }
  compute.wait(queue_.record());
}

View GradBuffer::of(const OwnRange& range) const {
  if (shard_) return shard_.rows(range.at, range.at + range.elements());
  return store_.grads().rows(range.begin, range.end);
}

void GradBuffer::add_squares(Stream& stream, View out) const {
  for (const OwnRange& range : counted_) run(stream, SumSquares{.out = out, .x = of(range)});
}

}  // namespace megalith

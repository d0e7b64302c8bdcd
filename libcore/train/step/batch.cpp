#include "libcore/train/step/batch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/data/samples/batch_sampler.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/late_copies.h"
#include "libcore/parallel/context_region.h"
#include "libcore/train/host/prefetch.h"

namespace megalith {
namespace {

constexpr int64_t kNothing = -1;

/// Bytes that `make` takes of an arena.
template <class Make>
size_t bytes_made(const Make& make) {
  Arena counting = Arena::counting("batch");
  make(counting);
  return counting.peak();
}

template <class T>
std::span<T> elements(View view) {
  return {view.as<T>(), static_cast<size_t>(view.elements())};
}

BatchSampler sampler_of(const BatchShape& shape, int64_t consumed, int microbatches) {
  return BatchSampler({.size = consumed + shape.micro_batch * microbatches * shape.data_size,
                       .consumed = consumed,
                       .micro_batch = shape.micro_batch,
                       .rank = shape.data_rank,
                       .ranks = shape.data_size});
}

}  // namespace

/// Host memory for the samples of some microbatches, in the model's layout [rows, b], and for one sample as
/// it is read, [s].
class Batch::Staging {
 public:
  Staging(Arena& arena, const BatchShape& shape, int microbatches)
      : shape_(shape),
        parts_(make_views(arena, shape, microbatches)),
        counted_(parts_.size()),
        sample_{.tokens = arena.make(DType::kI32, {shape.seq_length}, "one sample's tokens"),
                .labels = arena.make(DType::kI32, {shape.seq_length}, "one sample's labels"),
                .loss_mask = arena.make(DType::kF32, {shape.seq_length}, "one sample's loss mask"),
                .samples = {},
                .starts = shape.starts()
                              ? arena.make(DType::kI32, {shape.seq_length}, "one sample's document starts")
                              : View{},
                .gaps = {},
                .grad_scale = {},
                .block = {}} {}

  /// Reads the samples of the next microbatch into part `i`. Returns false when there is no further
  /// microbatch.
  bool read(BatchSampler& sampler, const SampleSource& source, int i) {
    const BatchViews& part = parts_[static_cast<size_t>(i)];
    const std::span<int64_t> numbers = elements<int64_t>(part.samples);
    if (!sampler.next(numbers)) return false;
    const int64_t rows = rows_of(numbers, source), own = rows / shape_.context_size;
    const RowPositions places = context_rows(shape_.context_rank, shape_.context_size, own);
    const std::span<float> mask = elements<float>(sample_.loss_mask.rows(0, rows));
    Counted counted{.rows = own, .all = true, .sum = 0};
    for (size_t j = 0; j < numbers.size(); ++j) {
      clear_sample();
      source.read(numbers[j], {.tokens = elements<int32_t>(sample_.tokens),
                               .labels = elements<int32_t>(sample_.labels),
                               .loss_mask = elements<float>(sample_.loss_mask),
                               .starts = elements<int32_t>(sample_.starts)});
      put_column<int32_t>(part.tokens.rows(0, own), j, sample_.tokens, places);
      put_column<int32_t>(part.labels.rows(0, own), j, sample_.labels, places);
      put_column<float>(part.loss_mask.rows(0, own), j, sample_.loss_mask, places);
      if (sample_.starts) put_column<int32_t>(part.starts.rows(0, own), j, sample_.starts, places);
      counted.all &= std::all_of(mask.begin(), mask.end(), [](float x) { return x == 1.0f; });
      counted.sum = std::accumulate(mask.begin(), mask.end(), counted.sum);
    }
    counted_[static_cast<size_t>(i)] = counted;
    return true;
  }

  struct Counted {
    /// Rows of the longest sample, rounded up to a multiple of length_step.
    int64_t rows = 0;
    bool all = false;  // whether every token counts in the loss
    double sum = 0;    // sum of the loss mask over whole samples
  };
  const BatchViews& part(int i) const { return parts_[static_cast<size_t>(i)]; }
  const Counted& counted(int i) const { return counted_[static_cast<size_t>(i)]; }

 private:
  int64_t rows_of(std::span<const int64_t> numbers, const SampleSource& source) const {
    if (!source.length) return shape_.seq_length;
    int64_t longest = 1;
    for (const int64_t number : numbers) longest = std::max(longest, source.length(number));
    const int64_t step = shape_.length_step;
    return std::min((longest + step - 1) / step * step, shape_.seq_length);
  }
  /// Sets the sample to zero. The reader of a short sample does not write its padding, which must not count.
  void clear_sample() const {
    for (const View& view : {sample_.tokens, sample_.labels, sample_.loss_mask, sample_.starts})
      if (view) std::memset(view.data, 0, view.bytes());
  }
  template <class T>
  static void put_column(View matrix, size_t j, View sample, const RowPositions& places) {
    const auto width = static_cast<size_t>(matrix.shape[1]);
    T* to = matrix.as<T>() + j;
    places.each_span(matrix.shape[0], [&](int64_t begin, int64_t end, int64_t position) {
      for (const T x : elements<T>(sample.rows(position, position + end - begin))) {
        *to = x;
        to += width;
      }
    });
  }

  BatchShape shape_;
  std::vector<BatchViews> parts_;
  std::vector<Counted> counted_;
  BatchViews sample_;
};

struct Batch::Host {
  explicit Host(const BatchShape& shape)
      : block(host_bytes(shape), HugePages::Backing::kReserved),
        arena("batch staging",
              {.data = {block.as<std::byte>().data(), [](void*) {}}, .bytes = block.as<std::byte>().size()}),
        microbatch(arena, shape, 1) {
    for (int i = 0; i < steps_of(shape); ++i) steps.emplace_back(arena, shape, shape.microbatches);
  }
  static int steps_of(const BatchShape& shape) { return shape.on_gpu ? 2 : 1; }

  HugePages block;  // its pages are locked for a GPU, so it shares none with other memory
  Arena arena;
  Staging microbatch;          // for load_now(): one microbatch
  std::vector<Staging> steps;  // for load(): whole steps, which are read ahead in turn
  size_t turn = 0;             // number of the one that is read or was read last
  int64_t ahead = kNothing;    // the step that it holds, or will hold once `prefetch` is done
  SampleSource source = {};    // of the step that was loaded last,
  int64_t next = kNothing;     // and the first sample after it
  Prefetch prefetch;           // the last member, so that its thread ends before the memory is freed
};

/// The copies of whole steps to a device, on a stream of their own, from page-locked memory.
struct Batch::LateUploads {
  LateCopies& copies;
  std::shared_ptr<void> locked;
  Stream stream;
  std::vector<Event> copied;  // for each of Host::steps: the end of its last copy
  Event released = {};        // after which the device's samples may be replaced; none: whatever was enqueued
  Drain drain{stream};
};

std::vector<Batch::BatchViews> Batch::make_views(Arena& arena, const BatchShape& shape, int microbatches) {
  const Shape rows{shape.rows(), shape.micro_batch};
  std::vector<BatchViews> views;
  for (int i = 0; i < microbatches; ++i) {
    const size_t begin = arena.mark();
    BatchViews& made = views.emplace_back(
        BatchViews{.tokens = arena.make(DType::kI32, rows, "tokens"),
                   .labels = arena.make(DType::kI32, rows, "labels"),
                   .loss_mask = arena.make(DType::kF32, rows, "loss mask"),
                   .samples = arena.make(DType::kI64, {shape.micro_batch}, "sample numbers"),
                   .starts = shape.starts() ? arena.make(DType::kI32, rows, "document starts") : View{},
                   .gaps = shape.gaps ? arena.make(DType::kF32, rows, "gaps to labels") : View{},
                   .grad_scale = shape.on_gpu ? arena.make(DType::kF32, {1}, "gradient scale") : View{},
                   .block = {}});
    made.block = {made.tokens.data, DType::kU8, {static_cast<int64_t>(arena.mark() - begin)}};
  }
  return views;
}

Batch::Batch(Arena& arena, const BatchShape& shape, Backend* device)
    : shape_(shape),
      views_(make_views(arena, shape, shape.microbatches)),
      host_(std::make_unique<Host>(shape)) {
  for (const BatchViews& views : views_)
    microbatches_.push_back({.tokens = views.tokens, .labels = views.labels, .samples = views.samples});
  if (!shape.on_gpu) return;
  slot_ = make_views(arena, shape, 1).front();
  auto* const copies = dynamic_cast<LateCopies*>(device);
  const std::span<std::byte> memory = host_->block.as<std::byte>();
  std::shared_ptr<void> locked = copies ? copies->lock_pages(memory.data(), memory.size()) : nullptr;
  if (locked)
    late_.reset(new LateUploads{.copies = *copies,
                                .locked = std::move(locked),
                                .stream = device->make_queue_stream(),
                                .copied = std::vector<Event>(host_->steps.size())});
}

Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;

namespace {

/// Number of labels that count in samples [first, end); 0: the source does not know.
int64_t counted_in(const SampleSource& source, int64_t first, int64_t end) {
  int64_t sum = 0;
  if (source.counted)
    for (int64_t i = first; i < end; ++i) sum += source.counted(i);
  return sum;
}

}  // namespace

void Batch::load(Stream& stream, const SampleSource& source, int64_t consumed) {
  if (host_->ahead != consumed) read_ahead(source, consumed);
  host_->ahead = kNothing;
  host_->prefetch.finish();
  loaded_ = shape_.microbatches_at(consumed);
  host_->source = source;
  host_->next = consumed + shape_.micro_batch * loaded_ * shape_.data_size;
  step_counted_ = counted_in(source, consumed, host_->next);
  const Staging& step = host_->steps[host_->turn];
  if (late_) return put_late(stream, step);
  for (int m = 0; m < loaded_; ++m) put(stream, step, m, m);
  read_on();
}

void Batch::read_on() {
  if (host_->ahead == kNothing && host_->next != kNothing) read_ahead(host_->source, host_->next);
}

// On a device that computes late, the copy of the step before has ended by now, unless the caller is early.
void Batch::read_ahead(const SampleSource& source, int64_t consumed) {
  host_->turn = (host_->turn + 1) % host_->steps.size();
  if (late_ && late_->copied[host_->turn].native)
    late_->copies.await(late_->stream, late_->copied[host_->turn]);
  Staging& ahead = host_->steps[host_->turn];
  host_->prefetch.start([&step = ahead, shape = shape_, source, consumed](const auto& cancelled) {
    const int count = shape.microbatches_at(consumed);
    BatchSampler sampler = sampler_of(shape, consumed, count);
    for (int m = 0; m < count && !cancelled; ++m) step.read(sampler, source, m);
  });
  host_->ahead = consumed;
}

void Batch::load_now(Stream& stream, const SampleSource& source, int64_t consumed) {
  loaded_ = shape_.microbatches;
  BatchSampler sampler = sampler_of(shape_, consumed, loaded_);
  step_counted_ = counted_in(source, consumed, consumed + shape_.samples());
  for (int m = 0; host_->microbatch.read(sampler, source, 0); ++m) put(stream, host_->microbatch, 0, m);
}

double Batch::scale_of(double counted) const {
  if (step_counted_ > 0) return 1.0 / static_cast<double>(step_counted_);
  return 1.0 / (static_cast<double>(loaded_) * shape_.data_size * std::max(counted, 1.0));
}

void Batch::put(Stream& stream, const Staging& staging, int part, int microbatch) {
  const BatchViews& from = staging.part(part);
  const auto [rows, all, sum] = staging.counted(part);
  const BatchViews& views = views_[static_cast<size_t>(microbatch)];
  const auto put_rows = [&, count = rows](const View& to, const View& host) {
    if (to) stream.from_host(to.rows(0, count), host.data);
  };
  put_rows(views.tokens, from.tokens);
  put_rows(views.labels, from.labels);
  put_rows(views.loss_mask, from.loss_mask);
  put_rows(views.starts, from.starts);
  stream.from_host(views.samples, from.samples.data);
  if (late_) late_->released = {};  // what reads these samples does not call release()
  Microbatch& target = microbatches_[static_cast<size_t>(microbatch)];
  target = microbatch_in(views, rows);
  if (all && !shape_.on_gpu) target.loss_mask = {};
  target.grad_scale = static_cast<float>(scale_of(sum));
  if (views.grad_scale) stream.from_host(views.grad_scale, &target.grad_scale);
}

/// Copies all microbatches at once.
void Batch::put_late(Stream& stream, const Staging& staging) {
  for (int m = 0; m < loaded_; ++m) {
    Microbatch& target = microbatches_[static_cast<size_t>(m)];
    target = microbatch_in(views_[static_cast<size_t>(m)], staging.counted(m).rows);
    target.grad_scale = static_cast<float>(scale_of(staging.counted(m).sum));
    *staging.part(m).grad_scale.as<float>() = target.grad_scale;
  }
  View all = views_.front().block;
  all.shape[0] *= loaded_;
  late_->stream.wait(late_->released.native ? std::exchange(late_->released, {}) : stream.record());
  late_->copies.copy_in(late_->stream, all, staging.part(0).block.data);
  late_->copied[host_->turn] = late_->stream.record();
  stream.wait(late_->copied[host_->turn]);
}

void Batch::release(Stream& stream) {
  if (late_) late_->released = stream.record();
}

Microbatch Batch::microbatch_in(const BatchViews& views, int64_t rows) const {
  const auto some = [rows](const View& view) { return view ? view.rows(0, rows) : View{}; };
  const View starts = some(views.starts);
  return {.tokens = some(views.tokens),
          .labels = some(views.labels),
          .loss_mask = some(views.loss_mask),
          .samples = views.samples,
          .starts = shape_.attention_starts ? starts : View{},
          .position_starts = shape_.position_starts ? starts : View{},
          .gaps = some(views.gaps)};
}

Microbatch Batch::put_in_slot(Stream& stream, int microbatch) {
  const auto number = static_cast<size_t>(microbatch);
  stream.copy(slot_.block, views_[number].block);
  Microbatch made = microbatch_in(slot_, microbatches_[number].tokens.shape[0]);
  made.grad_scale_at = slot_.grad_scale;
  return made;
}

void Batch::weigh(Stream& stream, std::span<const double> weights) {
  std::vector<float> mask;
  for (int m = 0; m < loaded_; ++m) {
    Microbatch& target = microbatches_[static_cast<size_t>(m)];
    const int64_t rows = target.tokens.shape[0], columns = shape_.micro_batch;
    const View place = views_[static_cast<size_t>(m)].loss_mask.rows(0, rows);
    mask.resize(static_cast<size_t>(rows * columns));
    stream.to_host(mask.data(), place);
    for (size_t i = 0; i < mask.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % columns;
      mask[i] *= static_cast<float>(weights[static_cast<size_t>(this->place(m, column))]);
    }
    stream.from_host(place, mask.data());
    target.loss_mask = place;
    target.grad_scale = 1;
  }
}

// All microbatches take the same bytes; views of a million would themselves take half a gigabyte.
size_t Batch::bytes(const BatchShape& shape) {
  const size_t one = bytes_made([&](Arena& arena) { make_views(arena, shape, 1); });
  return one * static_cast<size_t>(shape.microbatches + (shape.on_gpu ? 1 : 0));
}

size_t Batch::host_bytes(const BatchShape& shape) {
  const size_t one = bytes_made([&](Arena& arena) { make_views(arena, shape, 1); });
  const size_t staging = bytes_made([&](Arena& arena) { const Staging of_one(arena, shape, 1); });
  const size_t step = staging + one * static_cast<size_t>(shape.microbatches - 1);
  return staging + step * static_cast<size_t>(Host::steps_of(shape));
}

}  // namespace megalith

#include "libcore/train/batch.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

#include "libcore/data/samples/batch_sampler.h"
#include "libcore/parallel/context_region.h"
#include "libcore/train/prefetch.h"

namespace megalith {
namespace {

constexpr size_t kAlignment = 256;
constexpr int64_t kNothing = -1;

Memory host_memory(size_t bytes) {
  void* const block = std::aligned_alloc(kAlignment, bytes);  // an arena's sizes are multiples of it
  if (!block) throw std::bad_alloc();
  return {.data = {block, [](void* p) { std::free(p); }}, .bytes = bytes};
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

/// Samples of some microbatches on the host as the model wants them, [rows, b], and one sample as it is read,
/// [s].
class Batch::Staging {
 public:
  Staging(Arena& arena, const BatchShape& shape, int microbatches)
      : rows_(context_rows(shape.context_rank, shape.context_size, shape.rows())),
        parts_(make_places(arena, shape, microbatches)),
        counted_(parts_.size()),
        sample_{.tokens = arena.make(DType::kI32, {shape.seq_length}, "one sample's tokens"),
                .labels = arena.make(DType::kI32, {shape.seq_length}, "one sample's labels"),
                .loss_mask = arena.make(DType::kF32, {shape.seq_length}, "one sample's loss mask"),
                .samples = {}} {}

  /// Reads the next microbatch's samples into part `i`; false when there is none.
  bool read(BatchSampler& sampler, const SampleReader& read, int i) {
    const Place& part = parts_[static_cast<size_t>(i)];
    const std::span<int64_t> numbers = elements<int64_t>(part.samples);
    if (!sampler.next(numbers)) return false;
    Counted counted{.all = true, .sum = 0};
    const std::span<float> mask = elements<float>(sample_.loss_mask);
    for (size_t j = 0; j < numbers.size(); ++j) {
      read(numbers[j], {.tokens = elements<int32_t>(sample_.tokens),
                        .labels = elements<int32_t>(sample_.labels),
                        .loss_mask = mask});
      put_column<int32_t>(part.tokens, j, sample_.tokens);
      put_column<int32_t>(part.labels, j, sample_.labels);
      put_column<float>(part.loss_mask, j, sample_.loss_mask);
      counted.all &= std::all_of(mask.begin(), mask.end(), [](float x) { return x == 1.0f; });
      counted.sum = std::accumulate(mask.begin(), mask.end(), counted.sum);
    }
    counted_[static_cast<size_t>(i)] = counted;
    return true;
  }

  struct Counted {
    bool all = false;  // every token counts in the loss
    double sum = 0;    // of the loss mask, over whole samples
  };
  const Place& part(int i) const { return parts_[static_cast<size_t>(i)]; }
  const Counted& counted(int i) const { return counted_[static_cast<size_t>(i)]; }

 private:
  template <class T>
  void put_column(View matrix, size_t j, View sample) const {
    const auto width = static_cast<size_t>(matrix.shape[1]);
    T* to = matrix.as<T>() + j;
    rows_.each_span(matrix.shape[0], [&](int64_t begin, int64_t end, int64_t position) {
      for (const T x : elements<T>(sample.rows(position, position + end - begin))) {
        *to = x;
        to += width;
      }
    });
  }

  RowPositions rows_;  // of this rank
  std::vector<Place> parts_;
  std::vector<Counted> counted_;
  Place sample_;
};

struct Batch::Host {
  explicit Host(const BatchShape& shape)
      : arena("batch staging", host_memory(host_bytes(shape))),
        step(arena, shape, shape.microbatches),
        microbatch(arena, shape, 1) {}
  Arena arena;
  Staging step;              // filled ahead
  Staging microbatch;        // of load_now()
  int64_t ahead = kNothing;  // of which step `step` is, or will be when `prefetch` is done
  Prefetch prefetch;         // the last member: its thread ends before the memory goes
};

std::vector<Batch::Place> Batch::make_places(Arena& arena, const BatchShape& shape, int microbatches) {
  const Shape rows{shape.rows(), shape.micro_batch};
  std::vector<Place> places;
  for (int i = 0; i < microbatches; ++i)
    places.push_back({.tokens = arena.make(DType::kI32, rows, "tokens"),
                      .labels = arena.make(DType::kI32, rows, "labels"),
                      .loss_mask = arena.make(DType::kF32, rows, "loss mask"),
                      .samples = arena.make(DType::kI64, {shape.micro_batch}, "sample numbers")});
  return places;
}

Batch::Batch(Arena& arena, const BatchShape& shape)
    : shape_(shape),
      places_(make_places(arena, shape, shape.microbatches)),
      host_(std::make_unique<Host>(shape)) {
  for (const Place& place : places_)
    microbatches_.push_back({.tokens = place.tokens, .labels = place.labels, .samples = place.samples});
}

Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;

void Batch::load(Stream& stream, const SampleReader& read, int64_t consumed) {
  if (host_->ahead != consumed) read_ahead(read, consumed);
  host_->ahead = kNothing;
  host_->prefetch.finish();
  loaded_ = shape_.microbatches_at(consumed);
  for (int m = 0; m < loaded_; ++m) put(stream, host_->step, m, m);
  read_ahead(read, consumed + shape_.micro_batch * loaded_ * shape_.data_size);
}

void Batch::read_ahead(const SampleReader& read, int64_t consumed) {
  host_->prefetch.start([&step = host_->step, shape = shape_, read, consumed](const auto& cancelled) {
    const int count = shape.microbatches_at(consumed);
    BatchSampler sampler = sampler_of(shape, consumed, count);
    for (int m = 0; m < count && !cancelled; ++m) step.read(sampler, read, m);
  });
  host_->ahead = consumed;
}

void Batch::load_now(Stream& stream, const SampleReader& read, int64_t consumed) {
  loaded_ = shape_.microbatches;
  BatchSampler sampler = sampler_of(shape_, consumed, loaded_);
  for (int m = 0; host_->microbatch.read(sampler, read, 0); ++m) put(stream, host_->microbatch, 0, m);
}

void Batch::put(Stream& stream, const Staging& staging, int part, int microbatch) {
  const Place& from = staging.part(part);
  const Place& place = places_[static_cast<size_t>(microbatch)];
  stream.from_host(place.tokens, from.tokens.data);
  stream.from_host(place.labels, from.labels.data);
  stream.from_host(place.loss_mask, from.loss_mask.data);
  stream.from_host(place.samples, from.samples.data);

  Microbatch& target = microbatches_[static_cast<size_t>(microbatch)];
  const auto [all, sum] = staging.counted(part);
  target.loss_mask = all ? View{} : place.loss_mask;
  const double microbatches = static_cast<double>(loaded_) * shape_.data_size;
  target.grad_scale = static_cast<float>(1.0 / (microbatches * std::max(sum, 1.0)));
}

size_t Batch::bytes(const BatchShape& shape) {
  Arena counting = Arena::counting("batch");
  make_places(counting, shape, shape.microbatches);
  return counting.peak();
}

size_t Batch::host_bytes(const BatchShape& shape) {
  Arena counting = Arena::counting("batch staging");
  const Staging step(counting, shape, shape.microbatches), microbatch(counting, shape, 1);
  return counting.peak();
}

}  // namespace megalith

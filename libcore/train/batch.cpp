#include "libcore/train/batch.h"

#include <algorithm>
#include <numeric>

#include "libcore/data/samples/batch_sampler.h"

namespace megalith {

struct Batch::Host {
  Host(size_t s, size_t b)
      : sample_tokens(s),
        sample_labels(s),
        sample_mask(s),
        tokens(s * b),
        labels(s * b),
        mask(s * b),
        numbers(b) {}
  std::vector<int32_t> sample_tokens, sample_labels;
  std::vector<float> sample_mask;
  std::vector<int32_t> tokens, labels;
  std::vector<float> mask;
  std::vector<int64_t> numbers;
};

Batch::Batch(Arena& arena, const BatchShape& shape) : shape_(shape) {
  const Shape rows{shape.seq_length, shape.micro_batch};
  for (int i = 0; i < shape.microbatches; ++i) {
    places_.push_back({.tokens = arena.make(DType::kI32, rows, "tokens"),
                       .labels = arena.make(DType::kI32, rows, "labels"),
                       .loss_mask = arena.make(DType::kF32, rows, "loss mask"),
                       .samples = arena.make(DType::kI64, {shape.micro_batch}, "sample numbers")});
    microbatches_.push_back({.tokens = places_.back().tokens,
                             .labels = places_.back().labels,
                             .samples = places_.back().samples});
  }
}

void Batch::load(Stream& stream, const SampleReader& read, int64_t consumed) {
  Host host(static_cast<size_t>(shape_.seq_length), static_cast<size_t>(shape_.micro_batch));
  BatchSampler sampler({.size = consumed + shape_.samples(),
                        .consumed = consumed,
                        .micro_batch = shape_.micro_batch,
                        .rank = shape_.data_rank,
                        .ranks = shape_.data_size});
  for (int m = 0; sampler.next(host.numbers); ++m) load_one(stream, read, m, host);
}

void Batch::load_one(Stream& stream, const SampleReader& read, int microbatch, Host& host) {
  const size_t s = host.sample_tokens.size(), b = host.numbers.size();
  for (size_t j = 0; j < b; ++j) {
    read(host.numbers[j],
         {.tokens = host.sample_tokens, .labels = host.sample_labels, .loss_mask = host.sample_mask});
    for (size_t i = 0; i < s; ++i) {
      host.tokens[i * b + j] = host.sample_tokens[i];
      host.labels[i * b + j] = host.sample_labels[i];
      host.mask[i * b + j] = host.sample_mask[i];
    }
  }
  const Place& place = places_[static_cast<size_t>(microbatch)];
  stream.from_host(place.tokens, host.tokens.data());
  stream.from_host(place.labels, host.labels.data());
  stream.from_host(place.loss_mask, host.mask.data());
  stream.from_host(place.samples, host.numbers.data());

  Microbatch& target = microbatches_[static_cast<size_t>(microbatch)];
  const bool all_count = std::all_of(host.mask.begin(), host.mask.end(), [](float x) { return x == 1.0f; });
  target.loss_mask = all_count ? View{} : place.loss_mask;
  const double counted = std::accumulate(host.mask.begin(), host.mask.end(), 0.0);
  const double microbatches = static_cast<double>(shape_.microbatches) * shape_.data_size;
  target.grad_scale = static_cast<float>(1.0 / (microbatches * std::max(counted, 1.0)));
}

size_t Batch::bytes(const BatchShape& shape) {
  Arena counting = Arena::counting("batch");
  const Batch batch(counting, shape);
  return counting.peak();
}

}  // namespace megalith

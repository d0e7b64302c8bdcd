#include "libcore/data/samples/batch_sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"

namespace megalith {

BatchSampler::BatchSampler(const BatchSamplerSpec& spec) : spec_(spec) {
  if (spec.rank < 0 || spec.rank >= spec.ranks || spec.micro_batch < 1 || spec.consumed < 0)
    fail(ErrorKind::kInternal, "sampler of rank ", spec.rank, " of ", spec.ranks, ", micro batch ",
         spec.micro_batch, ", ", spec.consumed, " samples consumed");
}

int64_t BatchSampler::remaining() const {
  const int64_t left = spec_.size - spec_.consumed;
  return left > 0 ? left / (spec_.micro_batch * spec_.ranks) : 0;
}

bool BatchSampler::next(std::span<int64_t> samples) {
  if (static_cast<int64_t>(samples.size()) != spec_.micro_batch)
    fail(ErrorKind::kInternal, "room for ", samples.size(), " samples given, wanted ", spec_.micro_batch);
  if (remaining() == 0) return false;
  std::iota(samples.begin(), samples.end(), spec_.consumed + spec_.rank * spec_.micro_batch);
  spec_.consumed += spec_.micro_batch * spec_.ranks;
  return true;
}

namespace {
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// The product of numbers that are not negative, or the greatest number if that is less.
int64_t product_or_most(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}
}  // namespace

std::array<int64_t, 3> requested_samples(const RunLength& run) {
  const int64_t evaluated = product_or_most(run.eval_iters, run.global_batch);
  const int64_t evaluations = std::min(run.train_iters, kMost - 1) / run.eval_interval + 1;
  return {run.train_samples.value_or(product_or_most(run.train_iters, run.global_batch)),
          product_or_most(evaluations, evaluated), evaluated};
}

int64_t consumed_valid_samples(const RunLength& run, int64_t iteration) {
  return iteration / run.eval_interval * run.eval_iters * run.global_batch;
}

}  // namespace megalith

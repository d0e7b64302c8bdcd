#include "libcore/data/samples/batch_sampler.h"

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

std::array<int64_t, 3> requested_samples(const RunLength& run) {
  const int64_t evaluations = run.train_iters / run.eval_interval + 1;
  return {run.train_samples.value_or(run.train_iters * run.global_batch),
          evaluations * run.eval_iters * run.global_batch, run.eval_iters * run.global_batch};
}

int64_t consumed_valid_samples(const RunLength& run, int64_t iteration) {
  return iteration / run.eval_interval * run.eval_iters * run.global_batch;
}

}  // namespace megalith

#include "libcore/train/step/chunk_input.h"

namespace megalith {

MeasureInput chunk_input(const RunShape& run, const Coord& at, int chunk) {
  return {.model = run.model,
          .layers = chunk_layers(run, at, chunk),
          .split = tensor_split(run, at),
          .context_rank = at.context,
          .context_size = run.parallel.context,
          .recompute = recompute_plan(run.train),
          .dtype = model_dtype(run.train),
          .micro_batch = run.train.micro_batch,
          .tuning = run.tuning,
          .on_gpu = on_gpu(run)};
}

}  // namespace megalith

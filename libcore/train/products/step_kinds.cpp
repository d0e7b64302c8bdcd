#include "libcore/train/products/step_kinds.h"

#include <utility>

#include "libcore/ops/dry/dry_backend.h"
#include "libcore/train/step/chunk_input.h"

namespace megalith {

StepKinds::StepKinds(RunShape run) : run_(std::move(run)) {}

const std::set<ProductKind>& StepKinds::products() {
  return products_run(dry());
}

const std::set<AttentionKind>& StepKinds::attention() {
  return attention_run(dry());
}

const Backend& StepKinds::dry() {
  if (dry_) return *dry_;
  dry_ = make_dry_cuda_backend();
  const ParallelConfig& parallel = run_.parallel;
  for (int tensor = 0; tensor < parallel.tensor; ++tensor)
    for (int pipeline = 0; pipeline < parallel.pipeline; ++pipeline)
      for (int context = 0; context < parallel.context; ++context)
        for (int chunk = 0; chunk < pipeline_chunks(run_); ++chunk)
          measure(chunk_input(run_, {.tensor = tensor, .context = context, .pipeline = pipeline}, chunk),
                  *dry_);
  return *dry_;
}

}  // namespace megalith

#include "libcore/parallel/stage_table.h"

#include "libcore/base/error.h"

namespace megalith {

StageTable::StageTable(int layers, const ParallelConfig& config) : ranks_(config.pipeline) {
  Problems problems;
  const std::vector<int> counts = config.layer_counts(layers, problems);
  problems.throw_if_any();
  int first = 0;
  for (const int count : counts) {
    parts_.push_back({first, count});
    first += count;
  }
}

LayerRange StageTable::range(int pipeline, int chunk) const {
  if (pipeline < 0 || pipeline >= ranks_ || chunk < 0 || chunk >= chunks())
    fail(ErrorKind::kInternal, "stage table: no chunk ", chunk, " on pipeline rank ", pipeline,
         "; there are ", chunks(), " on ", ranks_);
  return parts_[static_cast<size_t>(chunk) * static_cast<size_t>(ranks_) + static_cast<size_t>(pipeline)];
}

}  // namespace megalith

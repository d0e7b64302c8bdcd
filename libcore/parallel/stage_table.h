#pragma once

#include <vector>

#include "libcore/config/parallel_config.h"

namespace megalith {

/// Consecutive global layer numbers.
struct LayerRange {
  int first = 0, count = 0;
  bool operator==(const LayerRange&) const = default;
};

/// Assigns layers to the ranks of the pipeline. The model is split into chunks() * ranks() parts of at least
/// one layer each. Chunk c of rank p is part c * ranks() + p, so each part's output goes to the next rank.
class StageTable {
 public:
  /// Splits the layers as ParallelConfig::layer_counts() says. kUsage, with the options' names, if that is
  /// not possible.
  StageTable(int layers, const ParallelConfig&);

  LayerRange range(int pipeline, int chunk = 0) const;
  int chunks() const { return static_cast<int>(parts_.size()) / ranks_; }  // of each rank
  int ranks() const { return ranks_; }                                     // of the pipeline

 private:
  int ranks_;
  std::vector<LayerRange> parts_;  // in order of depth
};

}  // namespace megalith

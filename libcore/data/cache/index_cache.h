#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/data/cache/cache_names.h"
#include "libcore/data/samples/split_plan.h"

namespace megalith {

/// What Megatron's cache of indexes is to hold for one --data-path.
struct IndexCache {
  const OpenBlend& open;
  std::vector<const SplitPlan*> plans = {};  // one for each split that reads this --data-path
  CacheTerms terms = {};
  std::string folder = {};  // --data-cache-path; empty: beside each dataset, as Megatron does, without blends
  size_t threads = 1;
};

/// What was written.
struct IndexCacheCounts {
  int64_t datasets = 0, blends = 0, samples = 0;
  uint64_t bytes = 0;
};

/// Writes the .npy files and descriptions that megatron-core's GPTDataset and BlendedDataset would write and
/// then find, byte for byte. A description appears after its arrays: without it, the job makes them again. At
/// the end all bytes are on the disk. Memory: the index of one dataset a thread, without its pairs, and a
/// block of the blend. kUsage if a blend asks for more samples of a dataset than it has; kData, kIo.
IndexCacheCounts write_index_cache(const IndexCache& cache);

}  // namespace megalith

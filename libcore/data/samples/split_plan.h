#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/samples/blended_dataset.h"
#include "libcore/data/samples/gpt_index.h"

namespace megalith {

/// The samples that a training run requests from its data. The members are named after Megatron's options.
struct DatasetRequest {
  std::string split = "969, 30, 1";
  int64_t seq_length = 0;
  uint32_t seed = 1234;
  std::array<std::optional<int64_t>, 3> samples = {};  // train, valid, test; empty: one epoch
  double surplus = 0.005;  // samples that a weighted dataset gets beyond its share, as a fraction of it
  bool extra_token = true;
  bool keep_last_partial_valid = false;
  int64_t pad = -1;               // pad id, from usable_pad(); -1: none (see GptDataset)
  std::string index_folder = {};  // where the indexes of datasets (see GptDataset) and of the blend are kept
};

/// The datasets that --data-path names, in that order, opened and checked. A dataset that is named twice is
/// mapped and checked only once.
struct OpenBlend {
  Blend blend;
  std::vector<IndexedDataset> datasets;
};
/// `split`: see weights_of_budgets(), for a path with budgets.
OpenBlend open_blend(const std::vector<std::string>& data_path, const std::string& split = "1");

/// What one split (train, valid or test) takes from its datasets: all that is known before an index is built.
struct SplitPlan {
  size_t split = 0;              // 0: train, 1: valid, 2: test
  std::vector<size_t> datasets;  // their numbers in OpenBlend::datasets
  std::vector<GptSpec> specs;    // what is drawn from each of them
  /// How samples of the datasets are mixed. kNone: there is one dataset. kWeights: by `shares`. kExhaustive:
  /// all samples, in proportion to `sizes`.
  enum class Mix : uint8_t { kNone, kWeights, kExhaustive };
  Mix mix = Mix::kNone;
  std::vector<double> shares;  // add up to 1
  std::vector<int64_t> sizes;  // samples of each dataset's index
  int64_t size = 0;            // samples of the split

  /// Bytes of all arrays: the datasets' indexes and the blend's.
  size_t index_bytes(const OpenBlend& open) const;
  size_t blend_bytes() const;  // of the blend's alone
};

/// The plans of the splits; absent as in build_datasets(). kUsage, kData.
std::array<std::optional<SplitPlan>, 3> plan_splits(const OpenBlend& open, const DatasetRequest& request);
/// The plan of a split that has a data path of its own, as in build_whole().
SplitPlan plan_whole(const OpenBlend& open, const DatasetRequest& request, size_t part);
/// The plans of the datasets of such a path one by one, as in build_each(). kUsage if they have budgets, or
/// weights without a number of samples; kData if one of them has too few tokens for a sample.
std::vector<SplitPlan> plan_each(const OpenBlend& open, const DatasetRequest& request, size_t part);

/// Memory that the order of samples takes, in bytes.
struct IndexMemory {
  size_t held = 0;      // during the run; 0 where the order is kept in files on a disk, which are mapped
  size_t building = 0;  // at most while it is built, beside `held` of what was built before
};
/// `folder`: where indexes are kept (DatasetRequest::index_folder); empty: in memory. Files that are there
/// already take nothing. Files in a folder in memory (tmpfs) count as held, and so do indexes that the folder
/// cannot keep.
IndexMemory index_memory(const OpenBlend& open, const SplitPlan& plan, const std::string& folder);
IndexMemory operator+(const IndexMemory& a, const IndexMemory& b);
/// Throws kUsage, with the option that helps, if held + building or held + model is more than `left`, the
/// bytes of memory that this machine has left. `model`: what the run's model takes after the build.
void require_index_memory(const IndexMemory& memory, size_t left, size_t model = 0);

}  // namespace megalith

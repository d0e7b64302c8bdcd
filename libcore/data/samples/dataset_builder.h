#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libcore/data/samples/blended_dataset.h"
#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// What training requests of its data. The names are Megatron's options.
struct DatasetRequest {
  std::string split = "969, 30, 1";
  int64_t seq_length = 0;
  uint32_t seed = 1234;
  std::array<std::optional<int64_t>, 3> samples = {};  // train, valid, test; empty: one epoch
  bool extra_token = true;
  bool keep_last_partial_valid = false;
  int64_t pad = -1;               // see GptDataset; resolve it with usable_pad()
  std::string index_folder = {};  // for the indexes of datasets (see GptDataset) and of the blend
};

/// The pad id, or -1 if it also ends documents: real ends would then be left out of the loss.
int64_t usable_pad(std::optional<int64_t> pad, int64_t eod);

/// The datasets that --data-path names, opened and checked, in its order. If one is named twice, its copies
/// share the mapping, so that it is checked once.
struct OpenBlend {
  Blend blend;
  std::vector<IndexedDataset> datasets;
};
OpenBlend open_blend(const std::vector<std::string>& data_path);

/// The source of a split: one dataset, or several mixed. Reading is thread-safe.
class TrainingDataset {
 public:
  using Source = std::variant<GptDataset, BlendedDataset>;
  explicit TrainingDataset(Source source) : source_(std::move(source)) {}

  int64_t size() const;
  std::vector<int64_t> ids(int64_t sample, int64_t* sequences = nullptr) const;
  void get(int64_t sample, const SampleView& out) const;
  const Source& source() const { return source_; }

 private:
  Source source_;
};

/// Train, valid and test; absent if --split gives no share or (except for train) no document.
using TrainingDatasets = std::array<std::optional<TrainingDataset>, 3>;

/// As Megatron's BlendedMegatronDatasetBuilder. One prefix without weight: that dataset. Weights: each
/// dataset is built half a percent larger than its share, and the blend may be a few samples larger than
/// requested. Several prefixes without weights: one epoch of each, in proportion to their samples. kUsage,
/// kData.
TrainingDatasets build_datasets(const OpenBlend& open, const DatasetRequest& request);
/// The same for one part with its own data path, all of which it takes (Megatron's --train-data-path and so
/// on).
TrainingDataset build_whole(const OpenBlend& open, const DatasetRequest& request, size_t part);

}  // namespace megalith

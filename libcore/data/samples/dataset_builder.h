#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "libcore/data/samples/blended_dataset.h"
#include "libcore/data/samples/gpt_dataset.h"
#include "libcore/data/samples/split_plan.h"

namespace megalith {

/// The pad id to use. It is -1 if `pad` is not set, or if `pad` equals `eod`: otherwise the real ends of
/// documents would be left out of the loss.
int64_t usable_pad(std::optional<int64_t> pad, int64_t eod);

/// The samples of one split, from one dataset or from a blend of several. Reading is thread-safe.
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

/// Builds what a plan says. Throws what GptDataset and BlendedDataset throw.
TrainingDataset build_planned(const OpenBlend& open, const SplitPlan& plan, const DatasetRequest& request);

/// The train, valid and test samples. A part is absent if --split gives it no share or, for valid and test,
/// no document.
using TrainingDatasets = std::array<std::optional<TrainingDataset>, 3>;

/// Builds the datasets that Megatron's BlendedMegatronDatasetBuilder would build. With one prefix and no
/// weight, the result is that dataset. With weights, each dataset is built half a percent larger than its
/// share, and the blend may be a few samples larger than requested. With several prefixes and no weights, the
/// blend holds one epoch of each dataset, mixed in proportion to their samples. kUsage, kData.
TrainingDatasets build_datasets(const OpenBlend& open, const DatasetRequest& request);
/// As build_datasets(), for one split (part 0: train, 1: valid, 2: test) that has a data path of its own. It
/// takes all sequences of that path (Megatron's --train-data-path and so on).
TrainingDataset build_whole(const OpenBlend& open, const DatasetRequest& request, size_t part);
/// The datasets of such a path one by one, not blended (Megatron's --multiple-validation-sets, where weights
/// have no effect, either). kUsage if they have budgets, or weights without a number of samples, as in
/// Megatron; kData if one of them has too few tokens for a sample.
std::vector<TrainingDataset> build_each(const OpenBlend& open, const DatasetRequest& request, size_t part);

}  // namespace megalith

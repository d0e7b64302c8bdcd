#include "libcore/data/samples/dataset_builder.h"

#include <utility>

#include "libcore/data/samples/blend_index_file.h"

namespace megalith {

int64_t usable_pad(std::optional<int64_t> pad, int64_t eod) {
  return pad && *pad != eod ? *pad : -1;
}

int64_t TrainingDataset::size() const {
  return std::visit([](const auto& d) { return d.size(); }, source_);
}

std::vector<int64_t> TrainingDataset::ids(int64_t sample, int64_t* sequences) const {
  return std::visit([&](const auto& d) { return d.ids(sample, sequences); }, source_);
}

void TrainingDataset::get(int64_t sample, const SampleView& out) const {
  std::visit([&](const auto& d) { d.get(sample, out); }, source_);
}

TrainingDataset build_planned(const OpenBlend& open, const SplitPlan& plan, const DatasetRequest& request) {
  std::vector<GptDataset> datasets;
  for (size_t i = 0; i < plan.datasets.size(); ++i)
    datasets.emplace_back(open.datasets[plan.datasets[i]], plan.specs[i], request.pad, request.index_folder);
  switch (plan.mix) {
    case SplitPlan::Mix::kWeights:
      return TrainingDataset(BlendedDataset(
          std::move(datasets), kept_blend_by_weights(plan.shares, plan.size, request.index_folder)));
    case SplitPlan::Mix::kExhaustive:
      return TrainingDataset(
          BlendedDataset(std::move(datasets), kept_blend_exhaustively(plan.sizes, request.index_folder)));
    case SplitPlan::Mix::kNone:
      break;
  }
  return TrainingDataset(std::move(datasets[0]));
}

TrainingDatasets build_datasets(const OpenBlend& open, const DatasetRequest& request) {
  const auto plans = plan_splits(open, request);
  TrainingDatasets datasets;
  for (size_t i = 0; i < datasets.size(); ++i)
    if (plans[i]) datasets[i] = build_planned(open, *plans[i], request);
  return datasets;
}

TrainingDataset build_whole(const OpenBlend& open, const DatasetRequest& request, size_t part) {
  return build_planned(open, plan_whole(open, request, part), request);
}

std::vector<TrainingDataset> build_each(const OpenBlend& open, const DatasetRequest& request, size_t part) {
  std::vector<TrainingDataset> sets;
  for (const SplitPlan& plan : plan_each(open, request, part))
    sets.push_back(build_planned(open, plan, request));
  return sets;
}

}  // namespace megalith

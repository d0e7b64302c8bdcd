#include "libcore/data/samples/dataset_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/blend_index_file.h"

namespace megalith {
namespace {

/// The samples that are requested of one split (train, valid or test).
struct SplitPart {
  const OpenBlend& open;
  const DatasetRequest& request;
  size_t split;
  bool whole = false;  // the split takes all sequences of its datasets; --split is ignored

  std::optional<int64_t> samples() const { return request.samples[split]; }
  SequenceRange range(size_t dataset) const {
    const int64_t sequences = open.datasets[dataset].sequences();
    return whole ? SequenceRange{0, sequences} : *split_sequences(request.split, sequences)[split];
  }

  GptDataset build(size_t dataset, std::optional<int64_t> samples) const {
    const IndexedDataset& data = open.datasets[dataset];
    return GptDataset(data,
                      GptSpec{.range = range(dataset),
                              .samples = samples,
                              .seq_length = request.seq_length,
                              .seed = request.seed,
                              .extra_token = request.extra_token,
                              .drop_last = split != 1 || !request.keep_last_partial_valid,
                              .name = kSplitNames[split]},
                      request.pad, request.index_folder);
  }
};

constexpr double kSurplus = 0.005;  // Megatron's mid_level_dataset_surplus

BlendedDataset blend_weighted(const SplitPart& part) {
  if (!part.samples())
    fail(ErrorKind::kUsage, "the data path has weights, so the number of ", kSplitNames[part.split],
         " samples must be given; only a blend without weights can take one epoch (as --full-validation "
         "does: give --valid-data-path without weights)");
  const std::vector<double> weights = normalized(part.open.blend.weights);
  std::vector<GptDataset> datasets;
  int64_t size = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = std::ceil(static_cast<double>(*part.samples()) * weights[i]);
    size += static_cast<int64_t>(share);
    datasets.push_back(part.build(i, static_cast<int64_t>(std::ceil(share * (1 + kSurplus)))));
  }
  return BlendedDataset(std::move(datasets),
                        kept_blend_by_weights(normalized(weights), size, part.request.index_folder));
}

BlendedDataset blend_by_size(const SplitPart& part) {
  std::vector<GptDataset> datasets;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < part.open.datasets.size(); ++i) {
    datasets.push_back(part.build(i, std::nullopt));
    sizes.push_back(datasets.back().size());
    if (sizes.back() == 0)
      fail(ErrorKind::kData, part.open.datasets[i].prefix(), ": its ", kSplitNames[part.split],
           " part is too short for one sample of ", part.request.seq_length,
           " tokens; leave the dataset out of --data-path, give the datasets weights, or change --split");
  }
  const std::string& folder = part.request.index_folder;
  if (!part.samples()) return BlendedDataset(std::move(datasets), kept_blend_exhaustively(sizes, folder));
  const std::vector<double> weights(sizes.begin(), sizes.end());
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  return BlendedDataset(std::move(datasets),
                        kept_blend_by_weights(normalized(weights), std::min(*part.samples(), total), folder));
}

TrainingDataset build_part(const SplitPart& part) {
  if (!part.open.blend.weights.empty()) return TrainingDataset(blend_weighted(part));
  if (part.open.datasets.size() == 1) return TrainingDataset(part.build(0, part.samples()));
  return TrainingDataset(blend_by_size(part));
}

}  // namespace

int64_t usable_pad(std::optional<int64_t> pad, int64_t eod) {
  return pad && *pad != eod ? *pad : -1;
}

OpenBlend open_blend(const std::vector<std::string>& data_path, const std::string& split) {
  if (data_path.empty()) fail(ErrorKind::kUsage, "--data-path is missing; give the prefix of a dataset");
  OpenBlend open{.blend = parse_blend(data_path), .datasets = {}};
  constexpr size_t kMax = std::numeric_limits<int16_t>::max() - 1;
  if (open.blend.prefixes.size() > kMax)
    fail(ErrorKind::kUsage, "--data-path names ", open.blend.prefixes.size(),
         " datasets; a blend has room for ", kMax);
  for (const std::string& prefix : open.blend.prefixes) {
    const auto same = std::find_if(open.datasets.begin(), open.datasets.end(),
                                   [&](const IndexedDataset& d) { return d.prefix() == prefix; });
    open.datasets.push_back(same != open.datasets.end() ? *same : IndexedDataset(prefix));
  }
  if (!open.blend.budgets.empty())
    open.blend.weights = weights_of_budgets(open.blend.budgets, open.datasets, split);
  return open;
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

TrainingDataset build_whole(const OpenBlend& open, const DatasetRequest& request, size_t part) {
  if (open.datasets.size() == 1) {  // as in Megatron, its weight has no effect
    const SplitPart whole{open, request, part, true};
    return TrainingDataset(whole.build(0, request.samples[part]));
  }
  return build_part({open, request, part, true});
}

std::vector<TrainingDataset> build_each(const OpenBlend& open, const DatasetRequest& request, size_t part) {
  if (!open.blend.weights.empty())
    fail(ErrorKind::kUsage, "the ", kSplitNames[part],
         " data have weights, although their datasets are evaluated one by one; leave out the weights, or "
         "--multiple-validation-sets");
  const SplitPart whole{open, request, part, true};
  std::vector<TrainingDataset> sets;
  for (size_t i = 0; i < open.datasets.size(); ++i) {
    sets.emplace_back(whole.build(i, request.samples[part]));
    if (sets.back().size() == 0)
      fail(ErrorKind::kData, open.datasets[i].prefix(), ": holds ", open.datasets[i].tokens(),
           " tokens, too few for a sample of --seq-length ", request.seq_length,
           ", so there is nothing to evaluate; leave this dataset out, or give it more documents");
  }
  return sets;
}

namespace {
/// The blend without the datasets that have no document in this split.
OpenBlend with_documents(const SplitPart& part) {
  OpenBlend kept;
  for (size_t i = 0; i < part.open.datasets.size(); ++i) {
    const SequenceRange range = part.range(i);
    if (range.begin == range.end) continue;
    kept.datasets.push_back(part.open.datasets[i]);
    kept.blend.prefixes.push_back(part.open.blend.prefixes[i]);
    if (!part.open.blend.weights.empty()) kept.blend.weights.push_back(part.open.blend.weights[i]);
  }
  return kept;
}

/// Builds one split. If no dataset has a document in it: for train, this is an error; valid and test are
/// absent (in Megatron: None) or, if one epoch was requested, empty.
std::optional<TrainingDataset> build_split(const SplitPart& part) {
  if (part.split == 0 || !part.samples()) return build_part(part);
  const OpenBlend kept = with_documents(part);
  if (kept.datasets.empty()) return std::nullopt;
  return build_part({kept, part.request, part.split});
}
}  // namespace

TrainingDatasets build_datasets(const OpenBlend& open, const DatasetRequest& request) {
  const auto ranges = split_sequences(request.split, 0);
  TrainingDatasets datasets;
  for (size_t i = 0; i < datasets.size(); ++i)
    if (ranges[i]) datasets[i] = build_split({open, request, i});
  return datasets;
}

}  // namespace megalith

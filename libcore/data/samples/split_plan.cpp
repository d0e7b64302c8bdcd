#include "libcore/data/samples/split_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/blend_index_file.h"
#include "libcore/data/samples/gpt_index_file.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {
namespace {

/// The samples that are requested of one split.
struct SplitPart {
  const OpenBlend& open;
  const DatasetRequest& request;
  size_t split;
  std::optional<SplitBounds> bounds = {};  // from --split; empty: the split has a data path of its own

  std::optional<int64_t> samples() const { return request.samples[split]; }
  SequenceRange range(size_t dataset) const {
    const int64_t sequences = open.datasets[dataset].sequences();
    return bounds ? sequences_between(*bounds, sequences) : SequenceRange{0, sequences};
  }
  GptSpec spec(size_t dataset, std::optional<int64_t> samples) const {
    return {.range = range(dataset),
            .samples = samples,
            .seq_length = request.seq_length,
            .seed = request.seed,
            .extra_token = request.extra_token,
            .drop_last = split != 1 || !request.keep_last_partial_valid,
            .name = kSplitNames[split]};
  }
};

void add(SplitPlan& plan, const SplitPart& part, size_t dataset, std::optional<int64_t> samples) {
  plan.datasets.push_back(dataset);
  plan.specs.push_back(part.spec(dataset, samples));
  const IndexedDataset& data = part.open.datasets[dataset];
  plan.sizes.push_back(plan_gpt_index(data, plan.specs.back()).pieces);
  data.idx().forget(0, data.idx().size());  // of thousands of datasets, what the system reads around is much
}

void plan_weighted(SplitPlan& plan, const SplitPart& part, const std::vector<size_t>& datasets) {
  if (!part.samples())
    fail(ErrorKind::kUsage, "--data-path has weights, so the number of ", kSplitNames[part.split],
         " samples must be given; only a blend without weights can take one epoch (as --full-validation "
         "does: give --valid-data-path without weights)");
  std::vector<double> given;
  for (const size_t i : datasets) given.push_back(part.open.blend.weights[i]);
  const std::vector<double> weights = normalized(given);
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = std::ceil(static_cast<double>(*part.samples()) * weights[i]);
    plan.size += static_cast<int64_t>(share);
    add(plan, part, datasets[i], static_cast<int64_t>(std::ceil(share * (1 + part.request.surplus))));
  }
  plan.mix = SplitPlan::Mix::kWeights;
  plan.shares = normalized(weights);
}

void plan_by_size(SplitPlan& plan, const SplitPart& part, const std::vector<size_t>& datasets) {
  for (const size_t i : datasets) {
    add(plan, part, i, std::nullopt);
    if (plan.sizes.back() == 0)
      fail(ErrorKind::kData, part.open.datasets[i].prefix(), ": its ", kSplitNames[part.split],
           " part is too short for one sample of ", part.request.seq_length,
           " tokens; leave the dataset out of --data-path, give the datasets weights, or change --split");
  }
  plan.size = std::accumulate(plan.sizes.begin(), plan.sizes.end(), int64_t{0});
  plan.mix = SplitPlan::Mix::kExhaustive;
  if (!part.samples()) return;
  plan.size = std::min(*part.samples(), plan.size);
  plan.mix = SplitPlan::Mix::kWeights;
  plan.shares = normalized(std::vector<double>(plan.sizes.begin(), plan.sizes.end()));
}

SplitPlan plan_of(const SplitPart& part, const std::vector<size_t>& datasets) {
  SplitPlan plan{.split = part.split, .datasets = {}, .specs = {}, .shares = {}, .sizes = {}};
  // Megatron leaves out the weight of a single dataset, but only of a split's own data path.
  const bool weighted = !part.open.blend.weights.empty() && (part.bounds || datasets.size() > 1);
  if (weighted) {
    plan_weighted(plan, part, datasets);
  } else if (datasets.size() == 1) {
    add(plan, part, datasets[0], part.samples());
    plan.size = plan.sizes[0];
  } else {
    plan_by_size(plan, part, datasets);
  }
  return plan;
}

std::vector<size_t> all_of(const OpenBlend& open) {
  std::vector<size_t> numbers(open.datasets.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

/// Plans one split. If no dataset has a document in it: for train, this is an error; valid and test are
/// absent (in Megatron: None) or, if one epoch was requested, empty.
std::optional<SplitPlan> plan_split(const SplitPart& part) {
  std::vector<size_t> datasets = all_of(part.open);
  if (part.split == 0 || !part.samples()) return plan_of(part, datasets);
  std::erase_if(datasets, [&](size_t i) { return part.range(i).begin == part.range(i).end; });
  if (datasets.empty()) return std::nullopt;
  return plan_of(part, datasets);
}

/// Whether the order of the plan's blend is in the folder; true if the plan mixes no datasets.
bool has_kept_blend(const SplitPlan& plan, const std::string& folder) {
  switch (plan.mix) {
    case SplitPlan::Mix::kWeights:
      return has_kept_blend_by_weights(plan.shares, plan.size, folder);
    case SplitPlan::Mix::kExhaustive:
      return has_kept_blend_exhaustively(plan.sizes, folder);
    case SplitPlan::Mix::kNone:
      break;
  }
  return true;
}

}  // namespace

size_t SplitPlan::blend_bytes() const {
  return mix == Mix::kNone ? 0 : static_cast<size_t>(size) * (sizeof(int16_t) + sizeof(int64_t));
}

size_t SplitPlan::index_bytes(const OpenBlend& open) const {
  size_t bytes = blend_bytes();
  for (size_t i = 0; i < datasets.size(); ++i)
    bytes += plan_gpt_index(open.datasets[datasets[i]], specs[i]).bytes();
  return bytes;
}

OpenBlend open_blend(const std::vector<std::string>& data_path, const std::string& split) {
  if (data_path.empty()) fail(ErrorKind::kUsage, "--data-path is missing; give the prefix of a dataset");
  OpenBlend open{.blend = parse_blend(data_path), .datasets = {}};
  constexpr size_t kMax = std::numeric_limits<int16_t>::max() - 1;
  if (open.blend.prefixes.size() > kMax)
    fail(ErrorKind::kUsage, "--data-path names ", open.blend.prefixes.size(),
         " datasets; a blend has room for ", kMax);
  std::unordered_map<std::string, size_t> opened;
  for (const std::string& prefix : open.blend.prefixes) {
    const auto [at, first] = opened.emplace(prefix, open.datasets.size());
    open.datasets.push_back(first ? IndexedDataset(prefix) : open.datasets[at->second]);
  }
  if (!open.blend.budgets.empty())
    open.blend.weights = weights_of_budgets(open.blend.budgets, open.datasets, split);
  return open;
}

std::array<std::optional<SplitPlan>, 3> plan_splits(const OpenBlend& open, const DatasetRequest& request) {
  const auto bounds = split_bounds(request.split);
  std::array<std::optional<SplitPlan>, 3> plans;
  for (size_t i = 0; i < plans.size(); ++i)
    if (bounds[i]) plans[i] = plan_split({open, request, i, bounds[i]});
  return plans;
}

SplitPlan plan_whole(const OpenBlend& open, const DatasetRequest& request, size_t part) {
  return plan_of({open, request, part}, all_of(open));
}

std::vector<SplitPlan> plan_each(const OpenBlend& open, const DatasetRequest& request, size_t part) {
  // Megatron, too, takes weights there only if the number of samples is given, and does not use them then.
  const bool budgets = !open.blend.budgets.empty();
  if (budgets || (!open.blend.weights.empty() && !request.samples[part]))
    fail(ErrorKind::kUsage, "the ", kSplitNames[part], " data have ", budgets ? "budgets" : "weights",
         ", although their datasets are evaluated one by one; leave out the ",
         budgets ? "budgets" : "weights", ", or --multiple-validation-sets");
  std::vector<SplitPlan> plans;
  for (size_t i = 0; i < open.datasets.size(); ++i) {
    plans.push_back(plan_of({open, request, part}, {i}));
    if (plans.back().size == 0)
      fail(ErrorKind::kData, open.datasets[i].prefix(), ": holds ", open.datasets[i].tokens(),
           " tokens, too few for a sample of --seq-length ", request.seq_length,
           ", so there is nothing to evaluate; leave this dataset out, or give it more documents");
  }
  return plans;
}

IndexMemory index_memory(const OpenBlend& open, const SplitPlan& plan, const std::string& folder) {
  const Keeping keeping = folder.empty() ? Keeping::kNot : keeping_in(folder);
  IndexMemory memory;
  const auto add_held = [&](size_t bytes) { memory.held += keeping == Keeping::kOnDisk ? 0 : bytes; };
  for (size_t i = 0; i < plan.datasets.size(); ++i) {
    const IndexedDataset& data = open.datasets[plan.datasets[i]];
    if (has_kept_gpt_index(data, plan.specs[i], folder)) continue;
    const GptIndexPlan index = plan_gpt_index(data, plan.specs[i]);
    add_held(index.bytes());
    if (keeping != Keeping::kNot)  // one array at a time is in memory
      memory.building = std::max({memory.building, static_cast<size_t>(index.documents) * sizeof(int32_t),
                                  static_cast<size_t>(index.pieces) * (index.wide_shuffle ? 8 : 4)});
  }
  if (!has_kept_blend(plan, folder)) add_held(plan.blend_bytes());
  return memory;
}

IndexMemory operator+(const IndexMemory& a, const IndexMemory& b) {
  return {.held = a.held + b.held, .building = std::max(a.building, b.building)};
}

void require_index_memory(const IndexMemory& memory, size_t left, size_t model) {
  // the model takes its memory when the order is built
  const size_t bytes = memory.held + memory.building;
  if (bytes <= left && memory.held + model <= left) return;
  const auto text = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  fail(ErrorKind::kUsage, "the order of samples (documents of all epochs, samples, shuffle) takes ",
       text(bytes), " of memory, ", model > 0 ? concat("the model ", text(model), ", ") : std::string(),
       "this machine has ", text(left), " left; ",
       memory.held > 0 ? "give --data-cache-path DIR, a folder on a disk in which only you may write, or "
                       : "this is the largest array of one dataset: blend smaller datasets, or ",
       "ask for fewer samples (--train-iters, --train-samples)");
}

}  // namespace megalith

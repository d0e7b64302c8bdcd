#include "libcore/train/data/run_datasets.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/batch_sampler.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/io/files/temporary_folder.h"

namespace megalith {
namespace {

constexpr size_t kValid = 1;  // of kSplitNames

std::array<int64_t, 3> samples_of(const TrainConfig& train) {
  return requested_samples({.train_iters = *train.iters,
                            .global_batch = train.global_batch,
                            .train_samples = train.samples,
                            .eval_interval = train.eval_interval,
                            .eval_iters = train.eval_iters});
}

/// The number of training samples in one epoch; 0 if `split` has none. kUsage for a blend by weights or
/// budgets, which has no epochs.
int64_t samples_of_an_epoch(const OpenBlend& blend, const PretrainConfig& config, const std::string& split) {
  if (!blend.blend.weights.empty())
    fail(ErrorKind::kUsage, "--num-epochs ", *config.train.epochs, " with ",
         blend.blend.budgets.empty() ? "weights" : "budgets",
         " in the data path: its datasets end at different times; give --train-iters");
  const auto plans = plan_splits(blend, {.split = split,
                                         .seq_length = config.model.seq_length,
                                         .seed = static_cast<uint32_t>(config.train.seed)});
  return plans[0] ? plans[0]->size : 0;
}

/// How --split divides the blend of a data path, for budgets.
std::string split_of(const DataConfig& data) {
  return data.has_own_paths() ? "1" : data.split;
}

/// Checks the token ids of the datasets of a --data-path. Without stored counts of the ids this may take
/// long.
void check_ids(const OpenBlend& blend, const PretrainConfig& config, TokenizerCheck& tokenizers,
               const OpenRules& rules) {
  if (!blend.blend.budgets.empty())
    log(" > the budgets as weights: ", printable(weights_text(blend.blend.weights, blend.blend.prefixes)));
  tokenizers.check(blend.datasets);
  for (const IndexedDataset& data : blend.datasets) {
    if (rules.scans) check_token_ids(data, config.model.vocab_size, config.data.cache, rules.check);
    rules.check();
  }
}

/// A set of samples that is planned and not yet built.
struct PlannedSet {
  const OpenBlend& blend;
  SplitPlan plan;
  size_t part;  // of kSplitNames
};
struct PlannedSets {
  DatasetRequest request;
  std::vector<PlannedSet> sets = {};
  bool valid_apart = false;  // whether validation sets are evaluated one by one
};

IndexMemory memory_of(const PlannedSets& sets, const std::string& folder) {
  IndexMemory memory;
  for (const PlannedSet& set : sets.sets) memory = memory + index_memory(set.blend, set.plan, folder);
  return memory;
}

/// Whether files of `bytes` fit in the folder for temporary files, and take no memory there.
bool fit_in_temporary_files(size_t bytes) try {
  const OwnFolder trial;  // others may write in /tmp itself
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(trial.path(), unknown);
  return !unknown && bytes <= space.available / 2 && keeping_in(trial.path()) == Keeping::kOnDisk;
} catch (const Error&) {  // none can be made
  return false;
}

/// The rule of OwnOrder, for an order that takes `held` bytes in memory.
bool keeps_own_files(size_t held) {
  constexpr size_t kLargeOrder = size_t{1} << 25;
  return held > kLargeOrder && fit_in_temporary_files(held);
}

/// Builds the sets, once the memory for the order of their samples is known to suffice.
void build_sets(PlannedSets sets, const OpenRules& rules, OpenData& data) {
  IndexMemory memory = memory_of(sets, rules.index_folder);
  std::optional<OwnFolder> own;  // lives until its files are mapped
  if (rules.index_folder.empty() && keeps_own_files(memory.held)) {
    sets.request.index_folder = own.emplace().path();
    memory = memory_of(sets, sets.request.index_folder);
  }
  if (rules.check_memory) rules.check_memory(memory);
  data.held = memory.held;
  for (const PlannedSet& set : sets.sets) {
    TrainingDataset built = build_planned(set.blend, set.plan, sets.request);
    if (set.part == kValid && sets.valid_apart)
      data.valid_sets.push_back(std::move(built));
    else
      data.splits[set.part] = std::move(built);
  }
}

/// Converts --num-epochs to steps. `split` divides the blend.
void take_epochs(const OpenBlend& blend, const std::string& split, PretrainConfig& config) {
  if (!config.train.epochs) return;
  config.train.set_epoch_steps(samples_of_an_epoch(blend, config, split) / config.train.global_batch);
}

/// The number of steps must be known.
DatasetRequest request_for(const PretrainConfig& config, const std::string& index_folder) {
  return {.split = config.data.split,
          .seq_length = config.model.seq_length,
          .seed = static_cast<uint32_t>(config.train.seed),
          .samples = wanted_samples(config.train),
          .index_folder = index_folder};
}

/// The blends of --train-data-path, --valid-data-path and --test-data-path, or that of --data-path.
using Blends = std::array<std::optional<OpenBlend>, 3>;

/// `names`: none, or one for each of the datasets, which are evaluated one by one.
void require_names(const std::vector<std::string>& names, const OpenBlend& valid) {
  if (names.empty() || names.size() == valid.datasets.size()) return;
  fail(ErrorKind::kUsage, "--validation-set-names has ", names.size(), names.size() == 1 ? " name" : " names",
       ", --valid-data-path names ", valid.datasets.size(),
       valid.datasets.size() == 1 ? " dataset" : " datasets", "; give each of these a name");
}

PlannedSets plan_own_paths(const Blends& blends, PretrainConfig& config, const std::string& folder) {
  if (blends[0]) take_epochs(*blends[0], "1,0,0", config);
  PlannedSets planned{.request = request_for(config, folder),
                      .valid_apart = config.train.multiple_validation};
  for (size_t part = 0; part < blends.size(); ++part) {
    if (!blends[part]) continue;
    const OpenBlend& blend = *blends[part];
    if (part != kValid || !planned.valid_apart) {
      planned.sets.push_back({blend, plan_whole(blend, planned.request, part), part});
      continue;
    }
    for (const SplitPlan& plan : plan_each(blend, planned.request, part))
      planned.sets.push_back({blend, plan, part});
  }
  return planned;
}

/// Plans the sets of --data-path, which --split divides.
PlannedSets plan_divided_path(const OpenBlend& blend, PretrainConfig& config, const std::string& folder) {
  take_epochs(blend, config.data.split, config);
  PlannedSets planned{.request = request_for(config, folder)};
  const auto plans = plan_splits(blend, planned.request);
  for (size_t part = 0; part < plans.size(); ++part)
    if (plans[part]) planned.sets.push_back({blend, *plans[part], part});
  return planned;
}

/// Opens what the data paths name.
Blends open_paths(const PretrainConfig& config) {
  const DataConfig& data = config.data;
  Blends blends;
  if (!data.has_own_paths()) {
    blends[0] = open_blend(data.data_path, split_of(data));
    return blends;
  }
  const std::array paths = {&data.train_path, &data.valid_path, &data.test_path};
  for (size_t part = 0; part < paths.size(); ++part)
    if (!paths[part]->empty()) blends[part] = open_blend(*paths[part], split_of(data));
  if (blends[kValid] && config.train.multiple_validation)
    require_names(config.train.validation_names, *blends[kValid]);
  return blends;
}

/// The plans refer to `blends`.
PlannedSets plan_sets(const Blends& blends, PretrainConfig& config, const std::string& folder) {
  return config.data.has_own_paths() ? plan_own_paths(blends, config, folder)
                                     : plan_divided_path(*blends[0], config, folder);
}

}  // namespace

OpenData open_data(PretrainConfig& config, TokenizerCheck tokenizers, const OpenRules& rules) {
  log("> building train, validation, and test datasets for GPT ...");
  const Blends blends = open_paths(config);
  OpenData data;
  for (const std::optional<OpenBlend>& blend : blends) {
    if (!blend) continue;
    check_ids(*blend, config, tokenizers, rules);
    data.files.insert(data.files.end(), blend->datasets.begin(), blend->datasets.end());
  }
  PlannedSets planned = plan_sets(blends, config, rules.index_folder);
  log_wanted_samples(config.train);
  build_sets(std::move(planned), rules, data);
  log("> finished creating GPT datasets ...");
  return data;
}

OwnOrder own_order(PretrainConfig config) {
  const Blends blends = open_paths(config);
  const size_t bytes = memory_of(plan_sets(blends, config, {}), {}).held;
  return {.bytes = bytes, .in_files = keeps_own_files(bytes)};
}

std::array<std::optional<int64_t>, 3> wanted_samples(const TrainConfig& train) {
  const auto [trained, valid, test] = samples_of(train);
  if (train.full_validation) return {trained, std::nullopt, test};
  return {trained, valid, test};
}

void log_wanted_samples(const TrainConfig& train) {
  const auto [trained, valid, test] = samples_of(train);
  log(" > datasets target sizes (minimum size):");
  log("    train:      ", trained);
  log("    validation: ", train.full_validation ? "one epoch" : concat(valid));
  log("    test:       ", test);
}

}  // namespace megalith

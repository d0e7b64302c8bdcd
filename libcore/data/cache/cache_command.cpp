#include "libcore/data/cache/cache_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/config/batch_schedule.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/data/cache/index_cache.h"
#include "libcore/data/samples/batch_sampler.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/options/cli.h"

namespace megalith {
namespace {

/// Options of Megatron-LM that are refused, and why.
constexpr std::pair<std::string_view, const char*> kRefused[] = {
    {"legacy-tokenizer", "it changes the tokenizer's part of the names; leave it out, and give --like"},
    {"mock-data", "a job on made-up numbers reads no cache"},
    {"phase-transition-iterations", "such a job asks for a different number of samples in each phase"},
    {"sft", "the datasets of such a job keep no index"}};

/// All names that a struct's options have.
template <class Config>
void add_names(std::set<std::string>& names) {
  Config config;
  for (const Field& field : fields_of(config)) {
    names.insert(field.name);
    names.insert(field.aliases.begin(), field.aliases.end());
    names.insert(field.opposites.begin(), field.opposites.end());
  }
}

bool is_foreign(const std::string& name) {
  for (const ForeignOption& option : foreign_options()) {
    if (option.name == name) return true;
    if (option.name.ends_with('*') && name.starts_with(option.name.substr(0, option.name.size() - 1)))
      return true;
  }
  return false;
}

/// What `megalith-data cache` does with an option, by its name without dashes.
class JobOptions {
 public:
  JobOptions() {
    add_names<CacheCommand>(read_);
    add_names<TokenizerTerms>(read_);
    for (const char* own : {"config", "help", "help-man", "help-markdown", "quiet", "version"})
      read_.insert(own);
    add_names<PretrainConfig>(known_);
  }
  bool reads(const std::string& name) const { return has(read_, name); }

  void require_known(const std::string& name) const {
    if (has(known_, name) || is_foreign(name)) return;
    std::vector<std::string> names(read_.begin(), read_.end());
    names.insert(names.end(), known_.begin(), known_.end());
    const auto near = nearest(name, names);
    fail(ErrorKind::kUsage, "cache: unknown option --", name,
         near ? concat("; did you mean --", *near, '?')
              : std::string("; give the options of the job as they follow pretrain_gpt.py"));
  }

 private:
  static bool has(const std::set<std::string>& names, const std::string& name) {
    return names.contains(name) || (name.starts_with("no-") && names.contains(name.substr(3)));
  }
  std::set<std::string> read_, known_;
};

/// Opens a data path as a job does. Megatron-LM knows neither budgets nor patterns of names.
OpenBlend open_of_job(const std::vector<std::string>& words, const std::string& split = "1") {
  OpenBlend open = open_blend(words, split);
  if (!open.blend.budgets.empty())
    fail(ErrorKind::kUsage, "cache: Megatron-LM knows no budgets (tokens=, epochs=); give the job and this ",
         "command the weights that they mean: ", weights_text(open.blend.weights, open.blend.prefixes));
  std::set<std::string> given;
  for (const std::string& word : words) given.emplace(trim(word));
  for (const std::string& prefix : open.blend.prefixes)
    if (!given.contains(prefix))
      fail(ErrorKind::kUsage, "cache: ", quote(prefix), " was found by a pattern, and Megatron-LM knows no ",
           "patterns; give the job and this command the names of the datasets");
  return open;
}

/// The samples and blend of each split, with the datasets of its own --…-data-path or of --data-path.
class Cache {
 public:
  Cache(const CacheCommand& command, const Json& tokenizer)
      : command_(command),
        terms_{.split = command.data.has_own_paths() ? std::string() : command.split,
               .seed = command.train.seed,
               .seq_length = command.seq_length,
               .tokenizer = tokenizer,
               .dataset_class = command.data.fim.on ? "GPTFIMDataset" : "GPTDataset"} {}

  IndexCacheCounts write() {
    if (!command_.data.has_own_paths()) {
      write_split_datasets();
      return counts_;
    }
    const std::array paths = {&command_.data.train_path, &command_.data.valid_path, &command_.data.test_path};
    for (size_t split = 0; split < paths.size(); ++split)
      if (!paths[split]->empty()) write_own_datasets(*paths[split], split);
    return counts_;
  }

 private:
  /// The datasets of --data-path, which --split divides.
  void write_split_datasets() {
    const OpenBlend open = open_of_job(command_.data.data_path, command_.data.split);
    const auto bounds = split_bounds(command_.split);
    const auto plans = plan_splits(open, request());
    std::vector<const SplitPlan*> present;
    for (size_t split = 0; split < plans.size(); ++split) {
      if (!bounds[split]) continue;
      if (!plans[split] || plans[split]->datasets.size() < open.datasets.size())
        fail(ErrorKind::kData, "--split ", command_.split, " leaves no document for ", kSplitNames[split],
             " in a dataset, and Megatron would never finish building such an index; give ",
             kSplitNames[split], " a larger share");
      present.push_back(&*plans[split]);
    }
    add(open, present);
  }
  void write_own_datasets(const std::vector<std::string>& words, size_t split) {
    constexpr size_t kValid = 1;  // of kSplitNames
    const OpenBlend open = open_of_job(words);
    const bool apart = split == kValid && command_.train.multiple_validation && open.datasets.size() > 1;
    const std::vector<SplitPlan> plans =
        apart ? plan_each(open, request(), split) : std::vector{plan_whole(open, request(), split)};
    std::vector<const SplitPlan*> all;
    for (const SplitPlan& plan : plans) all.push_back(&plan);
    add(open, all);
  }
  DatasetRequest request() const {
    return {.split = command_.split,
            .seq_length = command_.seq_length,
            .seed = static_cast<uint32_t>(command_.train.seed),
            .samples = command_.samples(),
            .surplus = command_.surplus};
  }
  void add(const OpenBlend& open, const std::vector<const SplitPlan*>& plans) {
    const size_t threads =
        command_.threads > 0 ? static_cast<size_t>(command_.threads) : static_cast<size_t>(usable_cpus());
    const IndexCacheCounts more = write_index_cache(
        {.open = open, .plans = plans, .terms = terms_, .folder = command_.folder, .threads = threads});
    counts_.datasets += more.datasets;
    counts_.blends += more.blends;
    counts_.samples += more.samples;
    counts_.bytes += more.bytes;
  }

  const CacheCommand& command_;
  CacheTerms terms_;
  IndexCacheCounts counts_;
};

}  // namespace

void CacheCommand::finish() {
  data.read_words();
  if (split.empty() && !data.data_path.empty() && data.args_file.empty()) split = data.split;
  if (!split.empty()) data.split = split;
  data.finish();
  train.tokens_of_a_sample = seq_length;
}

namespace {
/// The most samples of a job: 2^32 of each of 2^15 datasets.
constexpr int64_t kMostSamples = int64_t{1} << 47;
}  // namespace

void CacheCommand::validate(Problems& problems) const {
  DataConfig paths = data;
  paths.split = DataConfig().split;  // split_bounds() takes what numbers there are in --split, as Megatron
  paths.validate(problems);
  if (data.data_path.empty() && !data.has_own_paths())
    problems.missing({"data-path"}, " (or ", Opt{"train-data-path"}, " with ", Opt{"valid-data-path"},
                     " and ", Opt{"test-data-path"}, ')');
  if (data.has_own_paths() && !split.empty())
    problems.add(Opt{"split"}, " contradicts ", Opt{"train-data-path"}, ", in Megatron too");
  if (!data.has_own_paths() && !data.args_file.empty() && split.empty())
    problems.missing({"split"}, "; Megatron has a default of it beside ", Opt{"data-path"}, " only");
  if (train.multiple_validation && data.valid_path.empty())
    problems.add(Opt{"multiple-validation-sets"}, " needs ", Opt{"valid-data-path"}, " or ",
                 Opt{"per-split-data-args-path"});
  validate_length(problems);
}

/// The rules of Megatron's validate_args() for the length of a job and its batches.
void CacheCommand::validate_length(Problems& problems) const {
  const bool counted = train.iters.has_value(), by_schedule = !train.batch_schedule.empty();
  if (!counted && !train.samples) problems.missing({"train-iters"}, " (or ", Opt{"train-samples"}, ')');
  if (counted && train.samples)
    problems.add(Opt{"train-iters"}, ' ', *train.iters, " and ", Opt{"train-samples"}, ' ', *train.samples,
                 " contradict each other; give one of them");
  if (train.samples.value_or(0) > kMostSamples)
    problems.add(Opt{"train-samples"}, ' ', *train.samples, "; wanted at most ", kMostSamples);
  require_samples("step-batch-size-schedule", by_schedule, problems);
  const BatchSchedule schedule = parse_batch_schedule(train.batch_schedule, seq_length);
  if (by_schedule && !schedule.wrong.empty())
    problems.add(Opt{"step-batch-size-schedule"}, ' ', quote(train.batch_schedule), ' ', schedule.wrong);
  if (by_schedule && train.global_batch > 0)
    problems.add(Opt{"step-batch-size-schedule"}, " and ", Opt{"global-batch-size"}, ' ', train.global_batch,
                 " contradict each other; give one of them");
  const char* const absent = by_schedule && !eval_batch                ? "eval-global-batch-size"
                             : !by_schedule && train.global_batch == 0 ? "global-batch-size"
                                                                       : nullptr;
  if (absent)
    problems.missing({absent}, "; it is --micro-batch-size times the number of data-parallel ranks where ",
                     "the job does not give it");
}

/// For a batch that grows: its steps have different sizes.
void CacheCommand::require_samples(const char* option, bool given, Problems& problems) const {
  if (given && train.iters)
    problems.add(Opt{option}, " needs ", Opt{"train-samples"}, " N in place of ", Opt{"train-iters"});
}

void CacheCommand::validate_ramp(Problems& problems) const {
  require_samples("rampup-batch-size", !train.rampup.empty(), problems);
  TrainConfig growing;
  growing.rampup = train.rampup;
  growing.global_batch = train.global_batch;
  if (train.global_batch > 0) growing.validate(ParallelConfig{}, problems);
}

namespace {
/// Megatron's update_train_iters begins a last step for which the samples do not suffice, if a schedule gives
/// the batches.
int64_t steps_of_schedule(const TrainConfig& train) {
  const CountedSteps whole =
      steps_in_levels(train.batch_levels(), 0, std::numeric_limits<int64_t>::max(), *train.samples);
  return whole.steps + (whole.samples < *train.samples ? 1 : 0);
}
}  // namespace

void CacheCommand::settle(const TokenizerTerms& of, Problems& problems) {
  const bool old = of.core == MegatronCore::k0161 && of.like.empty();
  for (const auto& [name, given] : {std::pair{"step-batch-size-schedule", !train.batch_schedule.empty()},
                                    {"eval-global-batch-size", eval_batch.has_value()},
                                    {"start-eval-at-iter", start_eval.has_value()}})
    if (given && old)
      problems.add(Opt{name}, " is no option of 0.16.1; give ", Opt{"megatron-core"},
                   " head, or leave it out");
  if (of.core == MegatronCore::kHead) train.rampup.clear();
  validate_ramp(problems);
  if (!problems.empty()) return;
  if (!train.batch_schedule.empty()) train.iters = steps_of_schedule(train);
  train.finish();
  validate_amounts(problems);
}

void CacheCommand::validate_amounts(Problems& problems) const {
  const auto require = [&](const char* batch, double steps, int64_t samples, const char* what) {
    if (steps * static_cast<double>(samples) > static_cast<double>(kMostSamples))
      problems.add(Opt{batch}, ' ', samples, " for ", format_double(steps), " steps of ", what,
                   "; wanted at most ", kMostSamples, " samples in all");
  };
  if (!train.samples)
    require("global-batch-size", static_cast<double>(*train.iters), train.global_batch, "training");
  require(eval_batch ? "eval-global-batch-size" : "global-batch-size",
          static_cast<double>(evaluations()) * static_cast<double>(train.eval_iters),
          samples_of_evaluation_step(), "evaluation");
}

int64_t CacheCommand::evaluations() const {
  return *train.iters / train.eval_interval + 1;
}

std::array<std::optional<int64_t>, 3> CacheCommand::samples() const {
  const int64_t samples_of_training = train.samples.value_or(*train.iters * train.global_batch);
  const std::array<int64_t, 3> all = requested_samples({.train_iters = *train.iters,
                                                        .global_batch = samples_of_evaluation_step(),
                                                        .train_samples = samples_of_training,
                                                        .eval_interval = train.eval_interval,
                                                        .eval_iters = train.eval_iters});
  std::array<std::optional<int64_t>, 3> samples = {all[0], all[1], all[2]};
  if (start_eval)  // the evaluations before it are left out
    samples[1] = all[1] - std::min(evaluations(), *start_eval / train.eval_interval) * all[2];
  if (skip_train) samples[1] = all[2];
  if (train.full_validation) samples[1].reset();
  return samples;
}

std::vector<std::string> words_for_cache(const std::vector<std::string>& job) {
  const JobOptions options;
  std::vector<std::string> words;
  bool taken = true;
  for (const std::string& word : job) {
    if (word.starts_with("--")) {
      const std::string name = option_key(word.substr(2, word.find('=') - 2));
      for (const auto& [refused, reason] : kRefused)
        if (name == refused) fail(ErrorKind::kUsage, "cache: --", name, " is not supported: ", reason);
      taken = options.reads(name);
      if (!taken) options.require_known(name);
    } else if (words.empty() && taken && word != "-h") {
      fail(ErrorKind::kUsage, "cache: ", quote(word),
           " is no option; give those that follow pretrain_gpt.py");
    }
    if (taken) words.push_back(word);
  }
  return words;
}

void run_cache_command(const std::vector<std::string>& words, std::ostream& out) {
  CacheCommand command;
  TokenizerTerms tokenizer;
  Options options("data cache", "Write the cache of indexes that a job of Megatron-LM reads when it starts.");
  options.add("Data", command).add("Tokenizer, on which the names of files depend", tokenizer);
  options.epilog(
      "megalith-data cache --data-path 0.3 corpus_a 0.7 corpus_b --split 99,1,0 \\\n"
      "  --seq-length 4096 --train-iters 10000 --global-batch-size 512 --seed 1234 \\\n"
      "  --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt \\\n"
      "  --data-cache-path /data/cache\n"
      "Other options of the job may be among them; those that do not change the cache are ignored.\n");
  options.rule([&](Problems& problems) { command.settle(tokenizer, problems); });
  const auto text = options.read(words_for_cache(words));
  if (text) {
    out << *text;
    return;
  }
  options.check();
  const auto begin = std::chrono::steady_clock::now();
  const IndexCacheCounts counts = Cache(command, tokenizer_identifiers(tokenizer)).write();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  out << "indexes of " << format_count(counts.datasets) << (counts.datasets == 1 ? " dataset" : " datasets")
      << " and " << format_count(counts.blends) << (counts.blends == 1 ? " blend, " : " blends, ")
      << format_count(counts.samples) << " samples, " << format_bytes(static_cast<double>(counts.bytes))
      << " in " << format_duration(took.count()) << '\n';
}

}  // namespace megalith

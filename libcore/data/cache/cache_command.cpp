#include "libcore/data/cache/cache_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/config/data_args.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/data/samples/batch_sampler.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/options/cli.h"

namespace megalith {
namespace {

/// Options of Megatron-LM that change its cache and are not supported here.
constexpr std::string_view kUnsupported[] = {"eval-global-batch-size",
                                             "fim-data",
                                             "legacy-tokenizer",
                                             "mock-data",
                                             "multiple-validation-sets",
                                             "phase-transition-iterations",
                                             "per-split-data-args-path",
                                             "rampup-batch-size",
                                             "sft",
                                             "start-eval-at-iter",
                                             "step-batch-size-schedule"};

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
    for (const char* own : {"help", "version", "quiet"}) read_.insert(own);
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

/// The samples and blend of each split, with the datasets of its own --…-data-path or of --data-path.
class Cache {
 public:
  Cache(const CacheCommand& command, const Json& tokenizer)
      : command_(command),
        terms_{.split = command.data_path.empty() ? std::string() : command.split,
               .seed = command.seed,
               .seq_length = command.seq_length,
               .tokenizer = tokenizer} {}

  IndexCacheCounts write() {
    if (!command_.data_path.empty()) {
      write_split_datasets();
      return counts_;
    }
    const std::array paths = {&command_.train_path, &command_.valid_path, &command_.test_path};
    for (size_t split = 0; split < paths.size(); ++split) {
      if (paths[split]->empty()) continue;
      const OpenBlend open = open_blend(*paths[split]);
      const SplitPlan plan = plan_whole(open, request(), split);
      add(open, {&plan});
    }
    return counts_;
  }

 private:
  /// The datasets of --data-path, which --split divides.
  void write_split_datasets() {
    const OpenBlend open = open_blend(command_.data_path, command_.split);
    const auto bounds = split_bounds(command_.split);
    const auto plans = plan_splits(open, request());
    std::vector<const SplitPlan*> present;
    for (size_t split = 0; split < plans.size(); ++split) {
      if (!bounds[split]) continue;
      if (!plans[split] || plans[split]->datasets.size() < open.datasets.size())
        fail(ErrorKind::kData, "--split ", command_.split, " leaves no document for ", kSplitNames[split],
             " in a dataset, and Megatron would build such an index for ever; give ", kSplitNames[split],
             " a larger share");
      present.push_back(&*plans[split]);
    }
    add(open, present);
  }
  DatasetRequest request() const {
    return {.split = command_.split,
            .seq_length = command_.seq_length,
            .seed = static_cast<uint32_t>(command_.seed),
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
  if (!paths_file.empty() && data_path.empty()) data_path = read_data_args(paths_file);
  if (split.empty() && !data_path.empty()) split = "969, 30, 1";
  if (train_samples && global_batch && !train_iters) train_iters = *train_samples / *global_batch;
}

void CacheCommand::validate(Problems& problems) const {
  const bool own = !train_path.empty() || !valid_path.empty() || !test_path.empty();
  if (data_path.empty() == !own)
    problems.add("wanted either ", Opt{"data-path"}, " or ", Opt{"train-data-path"}, " with ",
                 Opt{"valid-data-path"}, " and ", Opt{"test-data-path"});
  if (own && !split.empty())
    problems.add(Opt{"split"}, " contradicts ", Opt{"train-data-path"}, ", in Megatron too");
  if (!train_iters) problems.add(Opt{"train-iters"}, " or ", Opt{"train-samples"}, " is missing");
  if (!global_batch)
    problems.add(Opt{"global-batch-size"},
                 " is missing; it is --micro-batch-size times the number of "
                 "data-parallel ranks where the job does not give it");
  if (train_iters && global_batch) {
    constexpr int64_t kMost = int64_t{1} << 47;  // 2^32 of each of 2^15 datasets
    const int64_t intervals = *train_iters / eval_interval;
    const double evaluations = (static_cast<double>(intervals) + 1) * static_cast<double>(eval_iters);
    const double steps = std::max(static_cast<double>(*train_iters), evaluations);
    if (steps * static_cast<double>(*global_batch) > static_cast<double>(kMost))
      problems.add(Opt{"global-batch-size"}, ' ', *global_batch, " for ", format_double(steps),
                   " steps of training or evaluation; wanted at most ", kMost, " samples in all");
  }
}

std::array<std::optional<int64_t>, 3> CacheCommand::samples() const {
  const std::array<int64_t, 3> all = requested_samples({.train_iters = *train_iters,
                                                        .global_batch = *global_batch,
                                                        .train_samples = train_samples,
                                                        .eval_interval = eval_interval,
                                                        .eval_iters = eval_iters});
  std::array<std::optional<int64_t>, 3> samples = {all[0], all[1], all[2]};
  if (skip_train) samples[1] = eval_iters * *global_batch;
  if (full_validation) samples[1].reset();
  return samples;
}

std::vector<std::string> words_for_cache(const std::vector<std::string>& job) {
  const JobOptions options;
  std::vector<std::string> words;
  bool taken = true;
  for (const std::string& word : job) {
    if (word.starts_with("--")) {
      const std::string name = option_key(word.substr(2, word.find('=') - 2));
      if (std::find(std::begin(kUnsupported), std::end(kUnsupported), name) != std::end(kUnsupported))
        fail(ErrorKind::kUsage, "cache: --", name, " changes the samples of a job and is not supported here");
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

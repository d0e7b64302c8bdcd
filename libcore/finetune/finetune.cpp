#include "libcore/finetune/finetune.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/finetune/generation.h"
#include "libcore/finetune/tuning_method.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"
#include "libcore/train/run/run_rules.h"

namespace megalith {
namespace {

// Shuffled records are sorted by length within this many micro-batches of all ranks, as in transformers.
constexpr int64_t kSortedBatches = 50;
// Sequence lengths are rounded up to a multiple of this, so that no layout and no kernel gets an odd length.
constexpr int64_t kLengthStep = 8;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // interval of something that never happens

int64_t longest_rows(const Examples& examples) {
  int64_t rows = 0;
  for (int64_t i = 0; i < examples.size(); ++i) rows = std::max(rows, examples[i].rows());
  return rows;
}

/// The rows of a sequence: the rows of the longest record or, with packing, the maximum for a record.
int64_t sequence_rows(const FinetuneConfig& config, const TuningSets& sets, const LengthLimits& limits) {
  int64_t rows = std::max<int64_t>(1, longest_rows(*sets.train));  // without training there are no examples
  if (sets.dev) rows = std::max(rows, longest_rows(*sets.dev));
  if (config.data.packing) rows = std::max(rows, limits.whole);
  const ParallelConfig& parallel = config.run.parallel;
  const int64_t step = kLengthStep * parallel.context * (parallel.sequence ? parallel.tensor : 1);
  return std::min<int64_t>((rows + step - 1) / step * step, config.method.positions_left(config.run.model));
}

void order_data(const FinetuneConfig& config, TuningSets& sets) {
  const int64_t rows = config.run.model.seq_length, step = config.run.train.global_batch;
  const auto packs = [&](const Examples& examples) {
    return config.data.packing ? pack(examples, rows) : one_by_one(examples);
  };
  const int64_t batch = int64_t{config.run.train.micro_batch} * config.run.parallel.data;
  if (config.schedule.do_train)
    sets.train_data = std::make_unique<TuningData>(
        *sets.train, packs(*sets.train),
        OrderOptions{.step = step,
                     .group = config.preference.answers(),
                     .sorted = config.data.group_by_length ? kSortedBatches * batch : 0,
                     .seed = static_cast<uint32_t>(config.run.train.seed)});
  if (sets.train_data && config.data.packing)
    log("packed: ", format_count(sets.train->size()), " records in ", format_count(sets.train_data->packs()),
        " sequences of ", rows, " tokens, ", format_fixed(100 * sets.train_data->fill(rows), 1), " % full");
  if (!sets.dev) return;
  sets.dev_data = std::make_unique<TuningData>(*sets.dev, packs(*sets.dev),
                                               OrderOptions{.step = step,
                                                            .shuffle = false,
                                                            .group = config.preference.answers(),
                                                            .sorted = std::numeric_limits<int32_t>::max()});
}

/// The steps between two of `times` moments in an epoch, as transformers computes them from a share of the
/// run.
int64_t interval_of(int times, const FinetuneConfig& config) {
  const double share = 1 / (times * config.schedule.epochs);
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::ceil(share * static_cast<double>(*config.run.train.iters))));
}

/// Sets the number of steps and the steps after which the run evaluates and saves, as far as they follow from
/// the number of samples.
void plan_steps(FinetuneConfig& config, const TuningData& data) {
  const ScheduleOptions& schedule = config.schedule;
  TrainConfig& train = config.run.train;
  const int64_t epoch = data.samples_of_epoch() / train.global_batch;
  if (train.decay_iters == train.iters) train.decay_iters.reset();
  if (!config.steps_given) train.iters = steps_of_epochs(schedule.epochs, epoch);
  if (schedule.evaluate != Moments::kSteps)
    train.eval_interval = schedule.evaluate == Moments::kEpoch ? epoch : kNever;
  if (schedule.save != Moments::kSteps) config.run.checkpoint.save_interval.reset();
  if (schedule.save == Moments::kEpoch) config.run.checkpoint.save_interval = epoch;
  if (schedule.evals_per_epoch > 0) train.eval_interval = interval_of(schedule.evals_per_epoch, config);
  if (schedule.saves_per_epoch > 0)
    config.run.checkpoint.save_interval = interval_of(schedule.saves_per_epoch, config);
  log("an epoch is ", epoch, " steps of ", train.global_batch, " sequences; the run ", *train.iters,
      " steps, ", format_fixed(static_cast<double>(*train.iters) / static_cast<double>(epoch), 2), " epochs");
}

/// Sets up a run that trains nothing: it evaluates once, at its end.
void plan_no_steps(FinetuneConfig& config) {
  TrainConfig& train = config.run.train;
  train.iters = 0;
  train.decay_iters.reset();
  train.eval_only = true;
  train.eval_interval = kNever;
  config.run.checkpoint.save_interval.reset();
}

/// Sets how much an evaluation reads: all records, unless the user asked for less.
void plan_evaluations(FinetuneConfig& config, const TuningSets& sets) {
  TrainConfig& train = config.run.train;
  const int64_t all = sets.dev_data ? sets.dev_data->samples_of_epoch() / train.global_batch : 0;
  train.eval_iters = train.eval_iters > 0 ? std::min(train.eval_iters, all) : all;
}

/// Sets the checkpoint with which the run begins, or which it evaluates if nothing is trained.
void plan_start(FinetuneConfig& config) {
  const FinetuneConfig::Resume resume = config.resume();
  config.run.checkpoint.load = resume.folder;
  config.run.checkpoint.load_named_by = resume.wanted ? "--resume-from-checkpoint" : "--output-dir";
  config.run.checkpoint.exit_on_missing = resume.wanted;
  if (config.schedule.do_train) return;
  const std::string& adapter = config.method.adapter;
  std::string what = config.data.model + (adapter.empty() ? "" : " with the adapter " + adapter);
  if (!resume.folder.empty()) what = "the checkpoint in " + resume.folder;
  const std::string& output = config.run.checkpoint.save;
  const bool others = resume.folder.empty() && !output.empty() && latest_checkpoint(output).has_value();
  log("nothing is trained (--no-do-train): ", what, " is used unchanged",
      others ? concat("; the checkpoints in ", output, " are not (--resume-from-checkpoint ", output, ")")
             : "");
}

/// A prefix is seen from everywhere, also from beyond the window.
void check_prefix_window(const FinetuneConfig& config, Problems& problems) {
  const ModelConfig& model = config.run.model;
  const int64_t prefix = config.method.positions_before();
  if (prefix == 0 || model.sliding_window == 0 || prefix + model.seq_length <= model.sliding_window) return;
  problems.add(Opt{"prefix-tuning"}, ": a prefix of ", prefix, " positions and a sequence of ",
               model.seq_length, " exceed the model's window of ", model.sliding_window, "; give a smaller ",
               Opt{"max-length"}, ", or ", Opt{"lora"});
}

void check_complete(FinetuneConfig& config) {
  Problems problems;
  config.run.train.finish(config.run.parallel);
  config.run.validate(problems);
  check_ranks(config.run.parallel, problems);
  check_prefix_window(config, problems);
  if ((config.schedule.best || config.schedule.patience > 0) && config.run.train.eval_iters == 0)
    problems.add(Opt{"load-best-model-at-end"}, " and ", Opt{"early-stopping-patience"},
                 " need records to evaluate on; give ", Opt{"eval-data"},
                 ", or a dev.json next to train.json");
  if (!config.schedule.do_train && config.run.train.eval_iters == 0 && !config.generation.wanted &&
      config.run.train.eval_tasks.empty()) {
    if (config.schedule.do_eval)
      problems.add(Opt{"no-do-train"}, " leaves nothing to do: there are no records to evaluate on; give ",
                   Opt{"eval-data"}, ", or a dev.json next to train.json");
    else
      problems.add(Opt{"no-do-train"}, " and ", Opt{"no-do-eval"},
                   " leave nothing to do; leave out one of them, or give ", Opt{"do-generation"});
  }
  problems.throw_if_any();
}

/// All options that must be the same on all ranks.
Json agreed_options(FinetuneConfig& config) {
  Json all = agreed_options(config.run);
  const auto add = [&](const Json& more) {
    for (const auto& [name, value] : more.as_object()) all.set(name, value);
  };
  TuningDataOptions data = config.data;
  MethodOptions method = config.method;
  ScheduleOptions schedule = config.schedule;
  for (std::string* path : {&data.model, &data.data, &data.eval_data, &data.chat_template, &method.adapter,
                            &schedule.resume_from})
    // A path may differ between machines, so it only counts that there is one.
    if (!path->empty()) *path = "given";
  add(to_json(fields_of(data)));
  add(to_json(fields_of(method)));
  add(to_json(fields_of(schedule)));
  add(to_json(fields_of(config.generation)));
  add(to_json(fields_of(config.preference)));
  all.set("num-epochs", config.schedule.epochs);
  all.set("output-dir", "given");
  return all;
}

/// Adds `first` to the numbers of the examples, and counts each pair as one label.
void number_pairs(SampleSource& source, int64_t first) {
  source.example = [first, example = source.example](int64_t sample) {
    const int64_t number = example(sample);
    return number < 0 ? number : number + first;
  };
  source.counted = [example = source.example](int64_t sample) {
    return int64_t{sample % 2 == 0 && example(sample) >= 0};
  };
}

struct RecordCount {
  int64_t records, tokens;
  uint64_t hash;  // hash of the tokenized records
  bool operator==(const RecordCount&) const = default;
};

std::string text_of(const std::vector<RecordCount>& counts) {
  std::string text;
  for (const auto& [records, tokens, hash] : counts)
    text +=
        concat(text.empty() ? "" : " and ", records, " records of ", tokens, " tokens (", hex64(hash), ")");
  return text;
}

/// Throws kData unless all ranks have read the same records. The paths of --data may differ between machines.
void require_same_records(Communicator& world, const TuningSets& sets) {
  std::vector<RecordCount> mine;
  for (const auto* examples : {&sets.train, &sets.dev})
    if (*examples && (*examples)->size() > 0) {
      const ExampleReport& report = (*examples)->report();
      mine.push_back({report.records, report.tokens, (*examples)->hash()});
    }
  const std::vector<std::vector<RecordCount>> all = exchange_values(world, mine);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all.front())
      fail(ErrorKind::kData, "--data gives rank 0 ", text_of(all.front()), " and rank ", rank, " ",
           text_of(all[rank]), "; give every machine the same files");
}

/// Locks the output folder while the results are written, because training has already released its lock.
/// Removes the incomplete results of killed runs.
class OutputLock {
 public:
  explicit OutputLock(const std::string& output) : lock_((make_directories(output), output)) {
    for (const std::string_view name : kTuningResults) lock_.remove_leftovers(concat(output, "/", name));
  }

 private:
  LockFile lock_;
};

PretrainResult tune(FinetuneConfig config, const StopSignal& stop, const RankWorld* ranks,
                    const ThreadLog& thread_log) {
  if (ranks) log_ranks(*ranks, config.run);
  log_world(config.run, ranks);
  const ModelSource model(config.data.model);
  TuningSets sets;
  const auto prepare = [&](const std::function<void()>& check) {
    sets = prepare_tuning(config, model);
    check();
    stop_if_asked();
  };
  if (ranks) {
    do_together(*ranks->comm, config.run.parallel.peer_timeout(), prepare);
    require_same_records(*ranks->comm, sets);
  } else {
    prepare([] {});
  }
  TuningMethod method(config, model, sets.records->ends());
  if (config.preference.wanted)
    method.learn_preferences(in_order(*sets.train, sets.dev.get()),
                             sets.train->size() + (sets.dev ? sets.dev->size() : 0));
  method.name_run(config.schedule.do_train
                      ? concat(hex64(sets.train->hash()), config.data.packing ? " packed" : "",
                               config.preference.wanted ? " dpo" : "")
                      : std::string(),
                  sets.dev ? hex64(sets.dev->hash()) : std::string());
  const TrainConfig& train = config.run.train;
  const DataSets data = sets.data_sets(*train.iters, train.global_batch, config.preference.wanted);
  PretrainResult result =
      ranks ? megalith::train(config.run, data, nullptr, stop, process_rank(*ranks), &method.tuning())
            : megalith::train(config.run, data, nullptr, stop, thread_log, &method.tuning());
  const bool leads = !ranks || ranks->comm->rank() == 0;
  if (!leads || !result.stopped_by.empty()) return result;
  const bool chosen = config.schedule.best && config.schedule.do_train && result.best > 0;
  const int64_t best = chosen ? result.best : result.iteration;
  if (best == 0 && !config.generation.wanted) return result;
  const OutputLock lock(config.run.checkpoint.save);
  if (best > 0) method.write_result(best);
  if (config.generation.wanted) generate_answers(config, sets, method.result(best), stop);
  return result;
}

}  // namespace

DataSets TuningSets::data_sets(int64_t steps, int64_t global_batch, bool pairs) const {
  DataSets sets;
  if (train_data) sets.train = {.read = train_data->source(), .size = steps * global_batch};
  if (dev_data) sets.valid = {.read = dev_data->source(), .size = dev_data->samples_of_epoch()};
  for (const Examples* examples : {train.get(), dev.get()})
    if (examples) sets.held += examples->bytes();
  for (const TuningData* data : {train_data.get(), dev_data.get()})
    if (data) sets.held += data->bytes();
  if (!pairs) return sets;
  if (train_data) number_pairs(sets.train.read, 0);
  if (dev_data) number_pairs(sets.valid.read, train->size());
  return sets;
}

TuningSets prepare_tuning(FinetuneConfig& config, const ModelSource& model) {
  PretrainConfig& run = config.run;
  run.train.micro_batch *= static_cast<int>(config.preference.answers());
  run.train.global_batch *= static_cast<int>(config.preference.answers());
  const DataFiles files = data_files(config.data, config.schedule.do_train);
  if (config.generation.wanted && files.dev.path.empty())
    fail(ErrorKind::kUsage, "--do-generation needs records to answer; give --eval-data, or a dev.json ",
         files.train.path.empty() ? "in " + config.data.data : "next to " + files.train.path);
  run.model = model.config();
  const auto dropout = [&](const std::optional<double>& given, double own) {
    return given.value_or(config.preference.wanted ? 0 : own);
  };
  run.model.attention_dropout = dropout(config.method.attention_dropout, run.model.attention_dropout);
  run.model.hidden_dropout = dropout(config.method.hidden_dropout, run.model.hidden_dropout);
  const int64_t positions = config.method.positions_left(run.model);
  if (positions < 2)
    fail(ErrorKind::kUsage, "--num-prefix-tokens ", config.method.positions_before(), ": the model has ",
         run.model.max_positions, " positions");
  const LengthLimits limits = length_limits(config.data, positions);
  TuningSets sets;
  if (config.generation.wanted) sets.answer_tokens = answer_length(config, positions);
  sets.records =
      std::make_unique<RecordFiles>(config.data, model, tokenizer_of(run.tokenizer, model), run.train.seed);
  const bool pairs = config.preference.wanted;
  sets.train = config.schedule.do_train ? sets.records->examples(files.train, limits, pairs)
                                        : std::make_unique<Examples>();
  if (!files.dev.path.empty() && config.schedule.do_eval)
    sets.dev = sets.records->examples(files.dev, limits, pairs);
  run.model.seq_length = static_cast<int>(sequence_rows(config, sets, limits));
  run.data.reset_attention_mask = run.data.reset_position_ids = config.data.packing;
  order_data(config, sets);
  if (sets.train_data)
    plan_steps(config, *sets.train_data);
  else
    plan_no_steps(config);
  plan_evaluations(config, sets);
  plan_start(config);
  check_complete(config);
  return sets;
}

PretrainResult finetune(FinetuneConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank, const ThreadLog& thread_log) {
  const Json agreed = agreed_options(config);
  return as_rank(config.run, agreed, rank,
                 [&](const RankWorld* ranks) { return tune(config, stop, ranks, thread_log); });
}

}  // namespace megalith

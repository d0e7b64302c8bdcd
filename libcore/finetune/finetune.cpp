#include "libcore/finetune/finetune.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/finetune/chat_segments.h"
#include "libcore/finetune/lora.h"
#include "libcore/finetune/prefix_files.h"
#include "libcore/generate/generation_files.h"
#include "libcore/io/file.h"
#include "libcore/text/formats/tokenizer_files.h"
#include "libcore/train/checkpointing.h"
#include "libcore/train/run_rules.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// Shuffled records are sorted by length in stretches of so many micro-batches of all ranks, as transformers.
constexpr int64_t kSortedBatches = 50;
// Sequences are a multiple of it long, so that no layout and no kernel meets an odd one.
constexpr int64_t kLengthStep = 8;

/// The folder's file of that name, with .json or .jsonl; empty: there is none.
std::string file_in(const std::string& folder, const char* name) {
  for (const char* end : {".json", ".jsonl"})
    if (const std::string path = folder + "/" + name + end; file_exists(path)) return path;
  return {};
}

struct DataFiles {
  std::string train, dev;
};

DataFiles data_files(const TuningDataOptions& options) {
  DataFiles files{options.data, options.eval_data};
  if (!fs::is_directory(options.data)) {
    if (!file_exists(options.data))
      fail(ErrorKind::kNoInput, options.data,
           ": no such file or folder; give --data DIR with train.json, or a file of records");
    return files;
  }
  files.train = file_in(options.data, "train");
  if (files.train.empty())
    fail(ErrorKind::kNoInput, options.data, ": holds neither train.json nor train.jsonl");
  if (files.dev.empty()) files.dev = file_in(options.data, "dev");
  return files;
}

/// The tokenizer that the options name, else the model's.
TokenizerFiles take_tokenizer(TokenizerConfig& config, const ModelSource& model) {
  if (!config.type.empty()) return tokenizer_files(config, 0);
  const TokenizerFiles& own = model.tokenizer();
  if (own.type.empty())
    fail(ErrorKind::kUsage, model.path(),
         ": the model came without a tokenizer; give --tokenizer-model, or --vocab-file and --merge-file");
  config.type = own.type;
  config.vocab = own.vocab;
  config.merges = own.merges;
  config.model = own.model;
  return own;
}

/// Reads records as examples.
class ExampleReader {
 public:
  ExampleReader(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files)
      : plain_(files), files_(generation_files(model, plain_.tokenizer())) {
    if (!files_.end.empty()) plain_ = PlainTokenizer(files, files_.end.front());
    if (plain_.tokenizer().vocab_size() > model.config().vocab_size)
      fail(ErrorKind::kUsage, "the tokenizer has ", plain_.tokenizer().vocab_size(), " ids, the model ",
           model.config().vocab_size, ": it belongs to another model");
    if (!options.chat_template.empty()) {
      files_.chat_template = read_file(options.chat_template);
      files_.template_file = options.chat_template;
    }
    records_.style = options.style;
    if (!files_.chat_template.empty()) chat_.emplace(files_.chat_template, files_.template_file);
    if (chat_)
      records_.render = [this](const Json::Array& messages, const std::string& where) {
        return chat_segments(*chat_, {files_.bos_token, files_.eos_token}, messages, where);
      };
  }

  std::unique_ptr<Examples> read(const std::string& path, const LengthLimits& limits) const {
    auto examples = std::make_unique<Examples>();
    read_records(path, records_, [&](Record&& record) { examples->add(record, plain_, limits); });
    log(report_line(path, examples->report()));
    if (examples->size() == 0) fail(ErrorKind::kData, path, ": holds no record with an answer");
    return examples;
  }

 private:
  PlainTokenizer plain_;
  GenerationFiles files_;
  std::optional<ChatTemplate> chat_;
  RecordOptions records_;
};

int64_t longest_rows(const Examples& examples) {
  int64_t rows = 0;
  for (int64_t i = 0; i < examples.size(); ++i) rows = std::max(rows, examples[i].rows());
  return rows;
}

/// Rows of a sequence: what the longest record takes; with packing as many as a record may have.
int64_t sequence_rows(const FinetuneConfig& config, const TuningSets& sets, int64_t most) {
  int64_t rows = longest_rows(*sets.train);
  if (sets.dev) rows = std::max(rows, longest_rows(*sets.dev));
  if (config.data.packing) rows = std::max(rows, most);
  const ParallelConfig& parallel = config.run.parallel;
  const int64_t step = kLengthStep * parallel.context * (parallel.sequence ? parallel.tensor : 1);
  return std::min<int64_t>((rows + step - 1) / step * step,
                           config.run.model.usable_positions() - config.method.positions_before());
}

void order_data(const FinetuneConfig& config, TuningSets& sets) {
  const int64_t rows = config.run.model.seq_length, step = config.run.train.global_batch;
  const auto packs = [&](const Examples& examples) {
    return config.data.packing ? pack(examples, rows) : one_by_one(examples);
  };
  const int64_t batch = int64_t{config.run.train.micro_batch} * config.run.parallel.data;
  sets.train_data = std::make_unique<TuningData>(
      *sets.train, packs(*sets.train),
      OrderOptions{.step = step,
                   .sorted = config.data.group_by_length ? kSortedBatches * batch : 0,
                   .seed = static_cast<uint64_t>(config.run.train.seed)});
  if (config.data.packing)
    log("packed: ", format_count(sets.train->size()), " records in ", format_count(sets.train_data->packs()),
        " sequences of ", rows, " tokens, ", format_fixed(100 * sets.train_data->fill(rows), 1), " % full");
  if (!sets.dev) return;
  sets.dev_data = std::make_unique<TuningData>(
      *sets.dev, packs(*sets.dev),
      OrderOptions{.step = step, .shuffle = false, .sorted = std::numeric_limits<int32_t>::max()});
}

/// Steps, and when to evaluate and to save: what follows from the number of samples.
void plan_steps(FinetuneConfig& config, const TuningSets& sets) {
  const ScheduleOptions& schedule = config.schedule;
  TrainConfig& train = config.run.train;
  const int64_t epoch = sets.train_data->samples_of_epoch() / train.global_batch;
  const int64_t never = std::numeric_limits<int64_t>::max();
  if (train.decay_iters == train.iters) train.decay_iters.reset();
  if (!config.steps_given) train.iters = steps_of_epochs(schedule.epochs, epoch);
  if (!schedule.do_train) train.iters = 0;
  if (!train.decay_iters && train.warmup_iters >= *train.iters && *train.iters > 0) {
    warn("the warm-up of ", train.warmup_iters, " steps outlasts the run's ", *train.iters,
         ": the learning rate does not reach ", train.lr);
    train.decay_iters = train.warmup_iters + 1;
  }
  if (schedule.evaluate != Moments::kSteps)
    train.eval_interval = schedule.evaluate == Moments::kEpoch ? epoch : never;
  const bool evaluates = schedule.do_eval && sets.dev_data;
  const int64_t all = evaluates ? sets.dev_data->samples_of_epoch() / train.global_batch : 0;
  train.eval_iters = evaluates && train.eval_iters > 0 ? std::min(train.eval_iters, all) : all;
  if (schedule.save != Moments::kSteps) config.run.checkpoint.save_interval.reset();
  if (schedule.save == Moments::kEpoch) config.run.checkpoint.save_interval = epoch;
  log("an epoch is ", epoch, " steps of ", train.global_batch, " sequences; the run ", *train.iters,
      " steps, ", format_fixed(static_cast<double>(*train.iters) / static_cast<double>(epoch), 2), " epochs");
}

void check_complete(FinetuneConfig& config) {
  Problems problems;
  config.run.train.finish(config.run.parallel);
  config.run.validate(problems);
  check_ranks(config.run.parallel, problems);
  if ((config.schedule.best || config.schedule.patience > 0) && config.run.train.eval_iters == 0)
    problems.add(
        "--load-best-model-at-end and --early-stopping-patience need records to evaluate on; give "
        "--eval-data, or a dev.json beside train.json");
  problems.throw_if_any();
}

// ---- method

LoraSettings settings_from(const MethodOptions& method) {
  return {.rank = method.rank,
          .alpha = method.alpha.value_or(2 * static_cast<double>(method.rank)),
          .dropout = method.dropout,
          .rslora = method.rslora,
          .modules = method.modules};
}

Json lora_json(const LoraSettings& settings, const std::string& base) {
  Json::Array modules;
  for (const std::string& name : settings.modules) modules.emplace_back(name);
  return Json(Json::Object{{"base", base},
                           {"r", settings.rank},
                           {"lora_alpha", settings.alpha},
                           {"lora_dropout", settings.dropout},
                           {"use_rslora", settings.rslora},
                           {"target_modules", Json(std::move(modules))}});
}

/// What a run trains, and what it keeps of it at the end.
class Method {
 public:
  Method(const FinetuneConfig& config, const ModelSource& model) : config_(config), model_(model) {
    tuning_.base = &model.tensors();
    tuning_.short_samples = true;
    tuning_.keep_best = config.schedule.best;
    tuning_.patience = config.schedule.patience;
    tuning_.threshold = config.schedule.threshold;
    if (config.method.is_prefix()) set_prefix();
    if (config.method.is_lora()) set_lora();
  }

  const Tuning& tuning() const { return tuning_; }

  /// Writes what others take from the checkpoint of an iteration.
  void write_result(int64_t iteration) const {
    const std::string& output = config_.run.checkpoint.save;
    const std::string folder = concat(output, "/", iteration_folder(iteration));
    if (config_.method.is_prefix()) {
      write_prefix(CheckpointReader(folder), model_.config(), config_.method.prefix_positions,
                   {output, model_.path()});
      log("wrote the prefix of iteration ", iteration, " to ", output);
    } else if (lora_) {
      write_adapter(CheckpointReader(folder), model_.config(), *lora_, {output, model_.path()});
      log("wrote the adapter of iteration ", iteration, " to ", output);
      if (config_.method.merge) write_merged(output);
    } else if (config_.method.export_model) {
      const ModelSource result(folder);
      export_hf({.source = result, .tokenizer_folder = tokenizer_folder(result), .check = false},
                output + "/hf");
      log("wrote the model of iteration ", iteration, " to ", output, "/hf");
    }
  }

 private:
  void set_lora() {
    lora_ = settings_from(config_.method);
    if (!config_.method.adapter.empty())
      lora_ = settings_of(begin_.emplace(config_.method.adapter), model_.config());
    tuning_.plan = lora_plan(model_.config(), *lora_);
    if (begin_) tuning_.adapters = (adapters_ = adapter_params(*begin_, model_.config(), tuning_.plan)).get();
    tuning_.args = {{"adapter", lora_json(*lora_, model_.path())}};
    log("training an adapter of rank ", lora_->rank, " on ", join(lora_->modules, ", "));
  }

  void set_prefix() {
    const int64_t positions = config_.method.prefix_positions;
    tuning_.plan = prefix_plan(positions);
    tuning_.args = {
        {"adapter", Json(Json::Object{{"base", model_.path()}, {"num_virtual_tokens", positions}})}};
    log("training a prefix of ", positions, " positions");
    if (config_.method.adapter.empty()) return;
    begin_.emplace(config_.method.adapter);
    adapters_ = prefix_params(*begin_, model_.config());
    tuning_.adapters = adapters_.get();
  }
  std::string tokenizer_folder(const ModelSource& result) const {
    return model_.tokenizer_folder().empty() ? result.tokenizer_folder() : model_.tokenizer_folder();
  }
  void write_merged(const std::string& output) const {
    const Adapter adapter(output);
    const std::unique_ptr<TensorFile> merged = merge_adapter(model_.tensors(), model_.config(), adapter);
    export_hf({.source = model_,
               .tokenizer_folder = model_.tokenizer_folder(),
               .tensors = merged.get(),
               .check = false},
              output + "/merged");
    log("wrote the model with the adapter added to ", output, "/merged");
  }

  const FinetuneConfig& config_;
  const ModelSource& model_;
  Tuning tuning_;
  std::optional<LoraSettings> lora_;
  std::optional<Adapter> begin_;
  std::unique_ptr<TensorFile> adapters_;
};

/// Everything that ranks have to be given alike.
Json agreed_options(FinetuneConfig& config) {
  Json all = agreed_options(config.run);
  const auto add = [&](const Json& more) {
    for (const auto& [name, value] : more.as_object()) all.set(name, value);
  };
  add(to_json(fields_of(config.data)));
  add(to_json(fields_of(config.method)));
  add(to_json(fields_of(config.schedule)));
  all.set("num-epochs", config.schedule.epochs);
  all.set("output-dir", "given");  // may be called otherwise elsewhere
  return all;
}

PretrainResult tune(FinetuneConfig config, const StopSignal& stop, const RankWorld* ranks,
                    const ThreadLog& thread_log) {
  if (ranks) log_ranks(*ranks, config.run);
  log_world(config.run.parallel);
  const ModelSource model(config.data.model);
  const TuningSets sets = prepare_tuning(config, model);
  const Method method(config, model);
  const TrainConfig& train = config.run.train;
  const DataSets data = sets.data_sets(*train.iters, train.global_batch);
  const PretrainResult result =
      ranks ? megalith::train(config.run, data, nullptr, stop, process_rank(*ranks), &method.tuning())
            : megalith::train(config.run, data, nullptr, stop, thread_log, &method.tuning());
  const bool leads = !ranks || ranks->comm->rank() == 0;
  if (!leads || !result.stopped_by.empty() || result.iteration == 0) return result;
  method.write_result(config.schedule.best && result.best > 0 ? result.best : result.iteration);
  return result;
}

}  // namespace

DataSets TuningSets::data_sets(int64_t steps, int64_t global_batch) const {
  DataSets sets{
      .train = {.read = train_data->source(), .size = steps * global_batch}, .valid = {}, .test = {}};
  if (dev_data) sets.valid = {.read = dev_data->source(), .size = dev_data->samples_of_epoch()};
  return sets;
}

TuningSets prepare_tuning(FinetuneConfig& config, const ModelSource& model) {
  PretrainConfig& run = config.run;
  const DataFiles files = data_files(config.data);
  const TokenizerFiles tokenizer = take_tokenizer(run.tokenizer, model);
  run.model = model.config();
  run.model.attention_dropout = config.method.attention_dropout.value_or(run.model.attention_dropout);
  run.model.hidden_dropout = config.method.hidden_dropout.value_or(run.model.hidden_dropout);
  const int64_t positions = run.model.usable_positions() - config.method.positions_before();
  if (positions < 2)
    fail(ErrorKind::kUsage, "--num-prefix-tokens ", config.method.prefix_positions, ": the model has ",
         run.model.usable_positions(), " positions");
  LengthLimits limits{.source = config.data.source_length,
                      .target = config.data.target_length,
                      .whole = config.data.max_length > 0 ? config.data.max_length : positions};
  if (limits.whole > positions + 1)
    fail(ErrorKind::kUsage, "--max-length ", limits.whole, ": the model has ", positions, " positions");

  const ExampleReader reader(config.data, model, tokenizer);
  TuningSets sets;
  sets.train = reader.read(files.train, limits);
  if (!files.dev.empty() && config.schedule.do_eval) sets.dev = reader.read(files.dev, limits);
  run.model.seq_length = static_cast<int>(sequence_rows(config, sets, limits.whole));
  run.data.reset_attention_mask = run.data.reset_position_ids = config.data.packing;
  order_data(config, sets);
  plan_steps(config, sets);
  if (!config.schedule.overwrite) run.checkpoint.load = run.checkpoint.save;
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

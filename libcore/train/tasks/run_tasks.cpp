#include "libcore/train/tasks/run_tasks.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/generate/sources/generation_files.h"
#include "libcore/io/files/file.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"
#include "libcore/text/formats/make_tokenizer.h"

namespace megalith {
namespace {

TokenizerFiles files_of_tokenizer(const PretrainConfig& config) {
  // A NullTokenizer's number of ids: the vocabulary without the end of a document.
  const int64_t more = config.tokenizer.type == "NullTokenizer" ? 1 : 0;
  TokenizerFiles files = tokenizer_files(config.tokenizer, config.model.vocab_size - more);
  files.hf_special_tokens = true;  // as megalith-eval reads a checkpoint's tokenizer
  return files;
}

/// The settings that a checkpoint of the run keeps of its tokenizer: those of its folder.
GenerationFiles settings_of(const TokenizerConfig& tokenizer) {
  if (!std::filesystem::is_directory(tokenizer.model)) return {};
  return tokenizer_settings(tokenizer.model);
}

std::vector<ScoredTokens> encoded(std::span<TaskRun> tasks, const PretrainConfig& config,
                                  std::string_view device) {
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(files_of_tokenizer(config));
  const int64_t length = positions_of_a_text(config.model, model_dtype(config.train), device);
  PairEncoder encoder(*tokenizer, settings_of(config.tokenizer), length);
  std::vector<ScoredTokens> texts =
      encode_tasks(tasks, encoder, config.model.vocab_size, "--eval-tasks: the tokenizer");
  if (encoder.cut() > 0)
    warn("--eval-tasks: ", format_count(encoder.cut()), " of ",
         format_count(static_cast<int64_t>(texts.size())), " texts have more tokens than the model's ",
         length, " positions; their beginnings are left out");
  return texts;
}

/// The order of the texts' tokens: neighbours then share the longest beginnings, which a rank reads once.
std::vector<size_t> order_of(std::span<const ScoredTokens> texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) -> const std::vector<int32_t>& { return texts[i].tokens; });
  return order;
}

/// The texts of this rank: as many tokens as the other ranks have.
std::vector<ScoredTokens> share_of(std::vector<ScoredTokens>& texts, std::span<const size_t> order,
                                   const Communicator& world) {
  const auto ranks = static_cast<size_t>(world.size()), rank = static_cast<size_t>(world.rank());
  size_t all = 0, before = 0;
  for (const ScoredTokens& text : texts) all += text.tokens.size();
  std::vector<ScoredTokens> out;
  for (const size_t i : order) {
    const size_t own = texts[i].tokens.size();
    if (before * ranks / all == rank) out.push_back(std::move(texts[i]));
    before += own;
  }
  return out;
}

}  // namespace

TaskOptions task_options(const TrainConfig& train) {
  return {
      .tasks = train.eval_tasks,
      .fewshot_data = train.eval_fewshot_data,
      .fewshots = train.eval_fewshots,
      .limit = train.eval_limit,
      .names = {.tasks = "eval-tasks", .fewshots = "eval-num-fewshot", .fewshot_data = "eval-fewshot-data"}};
}

void check_eval_tasks(const PretrainConfig& config, Problems& problems) {
  const TrainConfig& train = config.train;
  if (train.eval_tasks.empty()) {
    const std::pair<bool, Opt> others[] = {{train.eval_fewshots > 0, {"eval-num-fewshot"}},
                                           {!train.eval_fewshot_data.empty(), {"eval-fewshot-data"}},
                                           {train.eval_limit > 0, {"eval-limit"}}};
    for (const auto& [given, option] : others)
      if (given) problems.add(option, " needs ", Opt{"eval-tasks"});
    return;
  }
  task_options(train).validate(problems);
  if (config.parallel.model_ranks() > 1)
    problems.add(Opt{"eval-tasks"}, " needs the whole model on one rank, not on ",
                 config.parallel.model_ranks(),
                 "; leave it out, and evaluate a checkpoint with megalith-eval");
}

void reads_eval_tasks(RunFiles& files, const TrainConfig& train) {
  Problems problems;  // check_eval_tasks() has reported them
  for (const TaskSpec& spec : task_specs(task_options(train), problems)) {
    files.reads("--eval-tasks", spec.path);
    files.reads("--eval-fewshot-data", spec.examples);
  }
}

RunTasks::RunTasks(const PretrainConfig& config, Communicator& world)
    : world_(world), wait_(config.parallel.peer_timeout()), wanted_(!config.train.eval_tasks.empty()) {
  if (!wanted_) return;
  const TaskOptions options = task_options(config.train);
  Problems problems;  // check_eval_tasks() has reported them
  do_together(world_, wait_, [&](const auto&) {
    if (world_.rank() == 0) tasks_ = read_tasks(task_specs(options, problems), options);
  });
}

void RunTasks::encode(const PretrainConfig& config, std::string_view device) {
  if (!wanted_) return;
  std::vector<ScoredTokens> texts;
  do_together(world_, wait_, [&](const auto&) {
    if (world_.rank() == 0) texts = encoded(tasks_, config, device);
  });
  texts = rank0_value(world_, texts);
  size_ = reading_size(texts, config.model.vocab_size);
  order_ = order_of(texts);
  texts_ = share_of(texts, order_, world_);
}

size_t RunTasks::bytes(const RunShape& run) const {
  if (!wanted_) return 0;
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Stream stream(*dry);
  ParamTable params(run.tuning);
  const std::vector<Stage> stages = make_stages(run, {}, params);
  const ParamStore store(params, stream, store_options(run));
  return reading_bytes(stages.front(), size_);
}

RunTasks::Part RunTasks::read_part(Trainer& trainer, const std::function<bool()>& stop) {
  struct Ended {};
  Part part;
  std::optional<Progress> progress;
  do_together(world_, wait_, [&](const auto& check) {
    try {
      LikelihoodReader reader(trainer.stage(), trainer.stream(), {.size = size_});
      part.likelihoods = reader.read(texts_, [&](int64_t done, int64_t all) {
        check();
        if (!progress) progress.emplace("tasks", all, "tokens");
        progress->advance_to(done);
        if (stop()) throw Ended();
      });
    } catch (const Ended&) {
      part.stopped = true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      part.failure = error.what();
    }
  });
  return part;
}

std::vector<Likelihood> RunTasks::in_order(std::span<const Part> parts) const {
  std::vector<Likelihood> out(order_.size());
  size_t next = 0;
  for (const Part& part : parts)
    for (const Likelihood& one : part.likelihoods) out[order_[next++]] = one;
  return out;
}

std::optional<TasksReport> RunTasks::evaluate(int64_t iteration, Trainer& trainer,
                                              const std::function<bool()>& stop) {
  evaluated_at_ = iteration;
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Part> parts = exchange_values(world_, read_part(trainer, stop));
  if (std::ranges::any_of(parts, &Part::stopped)) {
    log("--eval-tasks at iteration ", iteration, ": stopped before its end, no figures");
    return std::nullopt;
  }
  if (world_.rank() > 0) return TasksReport{};
  for (const Part& part : parts)
    if (!part.failure.empty()) {
      warn("--eval-tasks at iteration ", iteration, ": ", part.failure);
      return TasksReport{};
    }
  const std::vector<Likelihood> likelihoods = in_order(parts);
  std::span<const Likelihood> left = likelihoods;
  TasksReport report{.iteration = iteration};
  for (TaskRun& task : tasks_) {
    left = task.take(left);
    for (const Metric& metric : task.metrics())
      report.figures.push_back(
          {.task = task.name(), .name = metric.name, .value = metric.value, .error = metric.error});
  }
  report.seconds = seconds_since(began);
  return report;
}

}  // namespace megalith

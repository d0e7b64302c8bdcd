#include "libcore/dialects/paddle/paddle_run.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/dialects/paddle/paddle_dataset.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/run_files.h"

namespace megalith {
namespace {

/// Whether a setting is given under PaddleNLP's and our name. If so, adds a problem for check().
bool given_twice(const char* theirs, const std::string& given, const char* ours, Options& options) {
  if (given.empty() || !options.given(ours)) return false;
  options.problems().add(Opt{theirs}, ' ', given, " and ", Opt{ours}, " mean the same; give one of them");
  return true;
}

bool has_tokenizer(const Options& options) {
  for (const char* name : {"tokenizer-type", "tokenizer-model", "vocab-file", "merge-file"})
    if (options.given(name)) return true;
  return false;
}

void take_model(const std::string& path, PretrainConfig& config, Options& options) {
  const ModelSource source(path);
  Json shape = to_json(source.config());
  options.adopt(shape, path, {"Model"});
  config.tokenizer.of_model = true;
  if (!has_tokenizer(options)) take_tokenizer(source.tokenizer(), config.tokenizer);
}

/// The newest complete OUTPUT/checkpoint-N: a checkpoint of ours or a Hugging Face folder. PaddleNLP and
/// Hugging Face's Trainer name their checkpoints this way.
std::optional<std::string> newest_numbered(const std::string& output) {
  constexpr std::string_view kHead = "checkpoint-";
  std::optional<std::string> newest;
  int64_t most = -1;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(output, error)) {
    const std::string name = entry.path().filename().string(), path = concat(output, "/", name);
    const auto number = name.starts_with(kHead) ? parse_int(name.substr(kHead.size())) : std::nullopt;
    if (!number || *number <= most) continue;
    if (!file_exists(path + "/" + kIndexFile) && !file_exists(path + "/config.json")) continue;
    most = *number;
    newest = path;
  }
  return newest;
}

/// The checkpoint in the output folder from which a run can resume; nothing if there is none.
std::optional<std::string> to_resume_from(const std::string& output) {
  if (latest_checkpoint(output)) return output;
  auto newest = newest_numbered(output);
  if (newest && !file_exists(*newest + "/" + kIndexFile))
    fail(ErrorKind::kUsage, *newest,
         ": is the newest checkpoint of --output-dir, but another tool wrote it: it has weights, but no "
         "state that "
         "a run could resume from; give --resume-from-checkpoint ",
         *newest, " to begin at step 0 with its weights, or --overwrite-output-dir to start over");
  return newest;
}

/// Determines where the run's state or initial weights come from. The run's own checkpoint takes precedence
/// over the model, so that a restarted run resumes.
void take_start(const PaddleConfig& paddle, PretrainConfig& config, const Options& options) {
  CheckpointConfig& checkpoint = config.checkpoint;
  if (!paddle.output_dir.empty()) checkpoint.save = paddle.output_dir;
  if (!paddle.resume_from.empty()) {
    checkpoint.load = paddle.resume_from;
    checkpoint.load_named_by = "--resume-from-checkpoint";
    checkpoint.exit_on_missing = true;
    return;
  }
  if (!checkpoint.load.empty()) {
    if (!options.on_command_line("load")) checkpoint.load_named_by = options.source("load");
    return;
  }
  if (!paddle.output_dir.empty() && !checkpoint.overwrite)
    if (const auto from = to_resume_from(paddle.output_dir)) {
      checkpoint.load = *from;
      checkpoint.load_named_by = "--output-dir";
      log("resuming from ", *from, " (--overwrite-output-dir starts over)");
      return;
    }
  if (!paddle.continue_training.value_or(false)) {
    if (!paddle.model.empty())
      log("starting from random values: only the shape of ", paddle.model,
          " is taken (--continue-training takes its weights)");
    return;
  }
  checkpoint.load = paddle.model;
  checkpoint.load_named_by = "--model-name-or-path with --continue-training";
  checkpoint.exit_on_missing = true;
  checkpoint.finetune = true;
}

/// Refuses a model folder as output folder: the run would write its checkpoints among the model's files.
void refuse_model_as_output(const std::string& model, const std::string& save, Problems& problems) {
  if (!model.empty() && !save.empty() && real_path(model) == real_path(save))
    problems.add(Opt{"model-name-or-path"}, ' ', model,
                 " is the folder that the run writes to; give another ", Opt{"output-dir"});
}

/// Converts --eval-iters to global batches. PaddleNLP counts batches of --per-device-eval-batch-size samples
/// per rank.
void count_evaluations(int eval_batch, PretrainConfig& config, Options& options) {
  options.derive([eval_batch, batches = config.train.eval_iters, &config] {
    const int64_t global = config.train.global_batch;
    if (batches == 0 || global == 0) return;
    const int64_t samples = batches * eval_batch * config.parallel.data;
    config.train.eval_iters = (samples + global - 1) / global;
    if (samples % global != 0)
      log("an evaluation takes ", config.train.eval_iters, " global batches, ",
          config.train.eval_iters * global, " samples: --eval-iters ", batches,
          " of --per-device-eval-batch-size ", eval_batch, " on ", config.parallel.data, " ranks are ",
          samples);
  });
}

}  // namespace

bool resumes_by_itself(const PaddleConfig& paddle, const PretrainConfig& config, const Options& options) {
  return !paddle.output_dir.empty() && !config.checkpoint.overwrite && paddle.resume_from.empty() &&
         !options.given("load") && traits_of(config.checkpoint.format).tracked;
}

void settle_paddle_start(PaddleConfig& paddle, PretrainConfig& config, Options& options) {
  paddle.model = path_or_snapshot(paddle.model);
  const bool two_saves = given_twice("output-dir", paddle.output_dir, "save", options);
  given_twice("input-dir", paddle.input_dir, "data-path", options);
  const bool two_loads = given_twice("resume-from-checkpoint", paddle.resume_from, "load", options);
  if (!two_saves && !two_loads) take_start(paddle, config, options);
  refuse_model_as_output(paddle.model, config.checkpoint.save, options.problems());
}

void settle_paddle(const PaddleConfig& paddle, PretrainConfig& config, Options& options) {
  if (!paddle.model.empty()) take_model(paddle.model, config, options);
  if (!paddle.input_dir.empty() && !options.given("data-path"))
    // If there are problems already, they are reported, and the folder is not read.
    config.data.data_path = {options.problems().empty()
                                 ? dataset_of_folder(paddle.input_dir, config.data.cache)
                                 : paddle.input_dir};
  if (paddle.do_train.value_or(false) && !paddle.do_eval.value_or(false)) config.train.eval_iters = 0;
  if (paddle.eval_batch) count_evaluations(*paddle.eval_batch, config, options);
  if (paddle.do_eval.value_or(false) && !paddle.do_train.value_or(false)) config.train.eval_only = true;
  options.rule([names = static_cast<const PaddleNames&>(paddle), &config](Problems& problems) {
    names.check_sharding(config.parallel.data, problems);
  });
  if (paddle.disable_tqdm) set_quiet(true);
  const std::string tensorboard = paddle.tensorboard(paddle.output_dir);
  if (!tensorboard.empty() && config.train.tensorboard.empty()) {
    config.train.tensorboard = tensorboard;
    if (paddle.wants_visualdl())
      log("--report-to visualdl: TensorBoard's files are written in its place, to ",
          config.train.tensorboard);
  }
}

}  // namespace megalith

#include "libcore/dialects/paddle/paddle_config.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// Names that options have in PaddleNLP's finetuning scripts alone.
constexpr std::string_view kOwnNames[] = {
    "dataset-name-or-path",     "tensor-parallel-degree", "pipeline-parallel-degree",
    "sharding-parallel-degree", "fp16-opt-level",         "eval-with-do-generation",
    "unified-checkpoint",       "zero-padding",           "scale-loss"};

bool is_own_name(std::string_view name) {
  const std::string key = option_key(name);
  return std::find(std::begin(kOwnNames), std::end(kOwnNames), key) != std::end(kOwnNames);
}

/// The names given to --report-to; one word may hold several, separated by commas.
std::vector<std::string> reporters(const PaddleNames& config) {
  std::vector<std::string> names;
  for (const std::string& word : config.report_to)
    for (const std::string& name : split(word, ',')) names.emplace_back(trim(name));
  return names;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void PaddleNames::validate(Problems& problems) const {
  for (const std::string& name : reporters(*this))
    if (name == "wandb")
      problems.add(Opt{"report-to"},
                   " wandb is not supported; give tensorboard, and `wandb sync` its folder");
    else if (!among({"tensorboard", "visualdl", "all", "none"}, name))
      problems.refuse({"report-to"}, quote(name), "tensorboard, visualdl, all or none");
  if (data_degree && *data_degree > 1)
    problems.add(Opt{"data-parallel-degree"}, ' ', *data_degree, " is not supported: ", Opt{"sharding"},
                 " shards over all data-parallel ranks; leave it out");
}

void PaddleNames::check_sharding(int data_ranks, Problems& problems) const {
  if (sharding_degree && *sharding_degree > 0 && *sharding_degree != data_ranks)
    problems.add(Opt{"sharding-parallel-degree"}, ' ', *sharding_degree, ": ", Opt{"sharding"},
                 " shards over all ", data_ranks, " data-parallel ranks; leave it out");
}

void PaddleConfig::validate(Problems& problems) const {
  PaddleNames::validate(problems);
  if (continue_training.value_or(false) && model.empty())
    problems.add(Opt{"continue-training"}, " needs ", Opt{"model-name-or-path"}, " DIR");
  if (do_train && !*do_train && !do_eval.value_or(false))
    problems.add(Opt{"do-train"}, " false without ", Opt{"do-eval"}, " leaves nothing to do");
}

std::string PaddleNames::tensorboard(const std::string& output) const {
  const std::vector<std::string> names = reporters(*this);
  const bool wanted = among(names, "tensorboard") || among(names, "visualdl") || among(names, "all");
  if (!wanted || among(names, "none")) return {};
  if (!logging_dir.empty()) return logging_dir;
  return output.empty() ? "runs" : output + "/runs";
}

bool PaddleNames::wants_visualdl() const {
  return among(reporters(*this), "visualdl");
}

void settle_paddle_training(TrainConfig& train, Options& options) {
  const auto name = [&](const char* option) { options.note_ignored(option); };
  if (options.given("recompute") && !train.recompute_all && options.given("recompute-granularity")) {
    train.recompute = Recompute::kNone;
    train.recompute_method.reset();
    train.recompute_layers.reset();
    name("--recompute-granularity with --recompute false");
  }
  if (train.warmup_iters > 0 && train.warmup_fraction) {
    train.warmup_fraction.reset();
    name("--warmup-ratio with --warmup-steps");
  }
  if (!train.fp16 && options.given("initial-loss-scale")) {
    train.initial_loss_scale = TrainConfig().initial_loss_scale;
    name("--scale-loss without --fp16");
  }
}

void take_paddle_loss_scale(TrainConfig& train, const Options& options) {
  constexpr double kScaleLoss = 32768;  // of --scale_loss in PaddleNLP's trainer/training_args.py
  if (train.fp16 && !train.fixed_loss_scale() && !options.given("initial-loss-scale"))
    train.initial_loss_scale = kScaleLoss;
}

void translate_paddle_preferences(FileTranslation& file) {
  const auto has = [&](const char* key) {
    return std::any_of(file.options.begin(), file.options.end(),
                       [&](const FileOption& option) { return option.path() == key; });
  };
  if (!has("train_dataset_path") || !has("beta") || !has("loss_type") || has("dpo")) return;
  file.options.push_back({.key = "dpo", .words = {"true"}, .where = file.options.front().where});
}

bool is_of_paddle(std::span<const std::string> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](std::string_view word) {
    return word.starts_with("--") && is_own_name(word.substr(2, word.find('=') - 2));
  });
}

bool is_of_paddle(const FileTranslation& file) {
  return std::any_of(file.options.begin(), file.options.end(),
                     [](const FileOption& option) { return is_own_name(option.path()); });
}

template std::vector<Field> fields_of<PaddleNames>(PaddleNames&);

}  // namespace megalith

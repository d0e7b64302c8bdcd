#include "libcore/finetune/tuning_method.h"

#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/finetune/prefix_files.h"

namespace megalith {
namespace {

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

}  // namespace

TuningMethod::TuningMethod(const FinetuneConfig& config, const ModelSource& model)
    : config_(config), model_(model) {
  tuning_.base = &model.tensors();
  tuning_.short_samples = true;
  tuning_.keep_best = config.schedule.best;
  tuning_.patience = config.schedule.patience;
  tuning_.threshold = config.schedule.threshold;
  if (config.method.is_prefix()) set_prefix();
  if (config.method.is_lora()) set_lora();
}

void TuningMethod::learn_preferences(SampleSource examples, int64_t count) {
  const PairOptions& pairs = config_.preference;
  tuning_.preferences = {.options = {.beta = pairs.beta, .smoothing = pairs.smoothing},
                         .examples = std::move(examples),
                         .count = count};
}

void TuningMethod::write_result(int64_t iteration) const {
  const std::string& output = config_.run.checkpoint.save;
  const std::string folder = checkpoint(iteration);
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

TunedModel TuningMethod::result(int64_t iteration) const {
  if (iteration == 0) return {.model = model_.path(), .adapter = config_.method.adapter};
  if (config_.method.method == "full") return {.model = checkpoint(iteration), .adapter = {}};
  return {.model = model_.path(), .adapter = config_.run.checkpoint.save};
}

std::string TuningMethod::checkpoint(int64_t iteration) const {
  return concat(config_.run.checkpoint.save, "/", iteration_folder(iteration));
}

void TuningMethod::set_lora() {
  lora_ = settings_from(config_.method);
  if (!config_.method.adapter.empty())
    lora_ = settings_of(begin_.emplace(config_.method.adapter), model_.config());
  tuning_.plan = lora_plan(model_.config(), *lora_);
  tuning_.plan.rate_of_b = config_.method.loraplus_ratio;
  tuning_.plan.int8 = config_.method.qlora;
  if (begin_) tuning_.adapters = (adapters_ = adapter_params(*begin_, model_.config(), tuning_.plan)).get();
  tuning_.args = {{"adapter", lora_json(*lora_, model_.path())}};
  log("training an adapter of rank ", lora_->rank, " on ", join(lora_->modules, ", "),
      config_.method.qlora ? ", over linear layers kept in 8 bits" : "");
}

void TuningMethod::set_prefix() {
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

std::string TuningMethod::tokenizer_folder(const ModelSource& result) const {
  return model_.tokenizer_folder().empty() ? result.tokenizer_folder() : model_.tokenizer_folder();
}

void TuningMethod::write_merged(const std::string& output) const {
  const Adapter adapter(output);
  const std::unique_ptr<TensorFile> merged = merge_adapter(model_.tensors(), model_.config(), adapter);
  export_hf({.source = model_,
             .tokenizer_folder = model_.tokenizer_folder(),
             .tensors = merged.get(),
             .check = false},
            output + "/merged");
  log("wrote the model with the adapter added to ", output, "/merged");
}

}  // namespace megalith

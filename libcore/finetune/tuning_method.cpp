#include "libcore/finetune/tuning_method.h"

#include <set>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/tensor_digest.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/convert/sources/generation_config.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/finetune/prefix_files.h"
#include "libcore/model/params.h"
#include "libcore/model/stage.h"

namespace megalith {
namespace {

LoraSettings settings_from(const MethodOptions& method) {
  const int64_t rank = method.rank.value_or(kLoraRank);
  return {.rank = rank,
          .alpha = method.alpha.value_or(2 * static_cast<double>(rank)),
          .dropout = method.dropout.value_or(0),
          .rslora = method.rslora.value_or(false),
          .modules = method.modules.empty() ? LoraSettings{}.modules : method.modules};
}

/// The names of the linear layers that a plan adapts, without the transformer layer's number.
std::set<std::string> names_of(const TuningPlan& plan) {
  std::set<std::string> names;
  for (const LowRankTarget& target : plan.targets) names.insert(target.layer + "." + target.part);
  return names;
}

/// The model's generation settings, with `ends` as the end of a text.
Json generation_with(const ModelSource& model, const std::vector<int32_t>& ends) {
  Json out = generation_config(model);
  Json::Array ids;
  for (const int32_t id : ends) ids.emplace_back(int64_t{id});
  out.set("eos_token_id", ids.size() == 1 ? ids.front() : Json(ids));
  return out;
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

/// How many of the parameters are trained, those that the plan adds included: "12,288 of 1,012,288
/// parameters (1.214 %)".
std::string trained_text(const ModelConfig& model, const TuningPlan& plan) {
  ParamTable table(plan);
  const Stage stage(model, {.count = model.layers}, {}, table);
  int64_t trained = 0;
  for (const Param& param : table.all())
    if (param.trainable && param.tie.empty()) trained += param.global.elements();
  const int64_t all = table.elements();
  return concat(format_count(trained), " of ", format_count(all), " parameters (",
                format_fixed(100 * static_cast<double>(trained) / static_cast<double>(all), 3), " %)");
}

}  // namespace

TuningMethod::TuningMethod(const FinetuneConfig& config, const ModelSource& model,
                           const std::vector<int32_t>& ends)
    : config_(config), model_(model) {
  tuning_.base = &model.tensors();
  tuning_.short_samples = true;
  tuning_.keep_best = config.schedule.best && config.schedule.do_train;
  tuning_.patience = config.schedule.patience;
  tuning_.threshold = config.schedule.threshold;
  tuning_.by_accuracy = config.schedule.by_accuracy();
  tuning_.results = config.earlier_results();
  if (config.method.is_prefix())
    set_prefix();
  else if (config.method.is_lora())
    set_lora();
  else
    tuning_.args = {{kGenerationConfig, generation_with(model, ends)}};
  if (config.method.is_lora() && config.method.merge) generation_ = generation_with(model, ends);
}

void TuningMethod::learn_preferences(SampleSource examples, int64_t count) {
  const PairOptions& pairs = config_.preference;
  tuning_.preferences = {.options = {.beta = pairs.beta, .smoothing = pairs.smoothing},
                         .examples = std::move(examples),
                         .count = count};
}

void TuningMethod::name_run(const std::string& data, const std::string& evaluated) {
  std::string settings = config_.method.method;
  if (lora_) {
    LoraSettings kept = *lora_;
    kept.dropout = 0;  // may change from one start of a run to the next
    settings += " " + lora_json(kept, {}).dump();
  }
  if (config_.method.is_prefix()) settings += concat(" ", config_.method.positions_before());
  if (config_.method.qlora) settings += " qlora";
  if (config_.schedule.by_accuracy()) settings += " chosen by accuracy";  // the best figure is of that kind
  Json::Object run = {{"model", tensor_digest(model_.tensors())},
                      {"adapter", adapters_ ? tensor_digest(*adapters_) : std::string()},
                      {"method", settings}};
  if (!data.empty()) run.emplace_back("data", data);
  if (!evaluated.empty()) run.emplace_back("evaluated", evaluated);
  tuning_.args.emplace_back(kTuningRun, Json(std::move(run)));
}

void TuningMethod::write_result(int64_t iteration) const {
  const std::string& output = config_.run.checkpoint.save;
  const std::string folder = checkpoint(iteration);
  if (config_.method.is_prefix()) {
    write_prefix(CheckpointReader(folder), model_.config(), config_.method.positions_before(),
                 {output, model_.path()});
    log("wrote the prefix of iteration ", iteration, " to ", printable(output));
  } else if (lora_) {
    write_adapter(CheckpointReader(folder), model_.config(), *lora_, {output, model_.path()});
    log("wrote the adapter of iteration ", iteration, " to ", printable(output));
    if (config_.method.merge) write_merged(output);
  } else if (config_.method.export_model && config_.schedule.do_train) {
    const ModelSource result(folder);
    const DType dtype = named_dtype(config_.method.export_dtype).value_or(model_.dtype());
    export_hf({.source = result, .tokenizer_folder = tokenizer_folder(result), .dtype = dtype},
              output + "/hf");
    log("wrote the model of iteration ", iteration, " to ", output, "/hf, in ", name_of(dtype));
  }
}

TunedModel TuningMethod::result(int64_t iteration) const {
  if (iteration == 0) return {.model = model_.path(), .adapter = config_.method.adapter};
  if (config_.method.method == "full") return {.model = checkpoint(iteration), .adapter = {}};
  return {.model = model_.path(), .adapter = config_.run.checkpoint.save};
}

std::string TuningMethod::checkpoint(int64_t iteration) const {
  const CheckpointConfig& folders = config_.run.checkpoint;
  if (!config_.schedule.do_train) return latest_checkpoint(folders.load).value_or(folders.load);
  return concat(folders.save, "/", iteration_folder(iteration));
}

void TuningMethod::log_method(const std::string& what) const {
  log(config_.schedule.do_train ? "training " : "", what, ": ", trained_text(model_.config(), tuning_.plan));
}

// Options that the user has not given get the adapter's values. The other ones must not differ from the
// adapter's, except for dropout, which does not change what the adapter has learned. Preferences are always
// learned without dropout.
void TuningMethod::take_adapter_settings() {
  const MethodOptions& method = config_.method;
  const LoraSettings given = std::exchange(*lora_, settings_of(*begin_, model_.config()));
  const auto refuse = [&](const std::string& option, const auto& theirs) {
    fail(ErrorKind::kUsage, option, ": the adapter ", method.adapter, " has ", theirs, "; leave it out");
  };
  if (method.rank && given.rank != lora_->rank) refuse(concat("--lora-rank ", given.rank), lora_->rank);
  if (method.alpha && given.alpha != lora_->alpha) refuse(concat("--lora-alpha ", given.alpha), lora_->alpha);
  if (method.rslora && given.rslora != lora_->rslora)
    refuse("--use-rslora", lora_->rslora ? "alpha / sqrt(rank)" : "alpha / rank");
  const auto names = [&](const LoraSettings& settings) {
    return names_of(lora_plan(model_.config(), settings));
  };
  if (!method.modules.empty() && names(given) != names(*lora_))
    refuse("--target-modules " + join(given.modules, ","), join(lora_->modules, ","));
  if (method.dropout || config_.preference.wanted) lora_->dropout = given.dropout;
}

void TuningMethod::set_lora() {
  lora_ = settings_from(config_.method);
  if (!config_.method.adapter.empty()) {
    begin_.emplace(config_.method.adapter);
    take_adapter_settings();
  }
  tuning_.plan = lora_plan(model_.config(), *lora_);
  tuning_.plan.rate_of_b = config_.method.loraplus_ratio;
  tuning_.plan.int8 = config_.method.qlora;
  if (begin_) tuning_.adapters = (adapters_ = adapter_params(*begin_, model_.config(), tuning_.plan)).get();
  tuning_.args = {{"adapter", lora_json(*lora_, model_.path())}};
  log_method(concat("an adapter of rank ", lora_->rank, " on ", join(lora_->modules, ", "),
                    config_.method.qlora ? ", over linear layers kept in 8 bits" : ""));
}

void TuningMethod::set_prefix() {
  const int64_t positions = config_.method.positions_before();
  tuning_.plan = prefix_plan(positions);
  tuning_.args = {
      {"adapter", Json(Json::Object{{"base", model_.path()}, {"num_virtual_tokens", positions}})}};
  log_method(concat("a prefix of ", positions, " positions"));
  if (config_.method.adapter.empty()) return;
  begin_.emplace(config_.method.adapter);
  adapters_ = prefix_params(*begin_, model_.config());
  tuning_.adapters = adapters_.get();
}

const TokenizerFolder& TuningMethod::tokenizer_folder(const ModelSource& result) const {
  // Prefer the model's own folder: it may hold files that a checkpoint does not keep, such as a chat
  // template.
  const TokenizerConfig& used = config_.run.tokenizer;
  const TokenizerFiles& own = model_.tokenizer();
  const bool is_own = used.model == own.model && used.vocab == own.vocab && used.merges == own.merges;
  return is_own && !model_.tokenizer_folder().empty() ? model_.tokenizer_folder() : result.tokenizer_folder();
}

void TuningMethod::write_merged(const std::string& output) const {
  const Adapter adapter(output);
  const std::unique_ptr<TensorFile> merged = merge_adapter(model_.tensors(), model_.config(), adapter);
  export_hf({.source = model_,
             .tokenizer_folder = model_.tokenizer_folder(),
             .dtype = named_dtype(config_.method.export_dtype),
             .tensors = merged.get(),
             .generation = generation_,
             .eod = config_.run.tokenizer.eod},
            output + "/merged");
  log("wrote the model with the adapter added to ", output, "/merged");
}

}  // namespace megalith

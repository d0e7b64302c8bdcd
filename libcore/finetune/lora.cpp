#include "libcore/finetune/lora.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/finetune/adapter_writer.h"
#include "libcore/finetune/memory_tensors.h"

namespace megalith {
namespace {

constexpr std::string_view kLayers = "decoder.layers.", kWeight = ".weight";

/// A linear layer, or a part of one, under our name and under the Hugging Face name.
struct Module {
  std::string layer;     // our name: "decoder.layers.0.self_attention.linear_qkv"
  std::string theirs;    // Hugging Face: "model.layers.0.self_attn.q_proj"
  LowRankTarget target;  // target.layer is the part of our name after the layer's number
  Shape weight;          // shape of our weight
  PartRows rows;         // rows of the part in our tensor and in the Hugging Face one
};

std::string_view without(std::string_view name, std::string_view end) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : name;
}

/// The place in our layer that one Hugging Face tensor corresponds to.
LowRankTarget target_of(const RenamedTensor& renamed, size_t part) {
  LowRankTarget target{.layer = {}, .part = {}};
  const auto p = static_cast<int64_t>(part);
  const int64_t queries = renamed.shape[1] - 2;
  if (renamed.row->transform == Transform::kSplitGateUp) target.first = p;
  if (renamed.row->transform == Transform::kSplitQkv) target.first = part == 0 ? 0 : queries + p - 1;
  if (renamed.theirs.size() > 1) target.slots = part == 0 && renamed.theirs.size() == 3 ? queries : 1;
  const std::string_view theirs = without(renamed.theirs[part].name, kWeight);
  target.part = theirs.substr(theirs.rfind('.') + 1);
  const std::string_view ours = without(renamed.ours, kWeight);
  target.layer = ours.substr(ours.find('.', kLayers.size()) + 1);
  return target;
}

std::vector<Module> modules_of(const ModelConfig& config) {
  std::vector<Module> out;
  for (const RenamedTensor& renamed : renamed_tensors(family_of(config).names, config)) {
    const bool matrix =
        renamed.ours.starts_with(kLayers) && renamed.ours.ends_with(kWeight) && renamed.shape.rank > 1;
    if (!matrix || renamed.absent) continue;
    for (size_t part = 0; part < renamed.theirs.size(); ++part)
      out.push_back({.layer = std::string(without(renamed.ours, kWeight)),
                     .theirs = std::string(without(renamed.theirs[part].name, kWeight)),
                     .target = target_of(renamed, part),
                     .weight = renamed.shape,
                     .rows = part_rows(renamed, part)});
  }
  return out;
}

/// The modules of the first transformer layer.
std::vector<Module> first_modules(const ModelConfig& config) {
  std::vector<Module> all = modules_of(config);
  std::erase_if(all, [&](const Module& module) { return !module.layer.starts_with("decoder.layers.0."); });
  return all;
}

/// The last name of a module ("q_proj"). If another module of the layer has the same one, the last two
/// ("attn.c_proj").
std::string short_name(const Module& module, const std::vector<Module>& all) {
  const auto same = std::count_if(
      all.begin(), all.end(), [&](const Module& other) { return other.target.part == module.target.part; });
  if (same == 1) return module.target.part;
  const size_t last = module.theirs.rfind('.');
  return module.theirs.substr(module.theirs.rfind('.', last - 1) + 1);
}

bool is_named(const Module& module, const std::string& name) {
  return name == kAllLinear || module.theirs == name || module.theirs.ends_with("." + name);
}
bool is_wanted(const Module& module, const LoraSettings& settings) {
  return std::any_of(settings.modules.begin(), settings.modules.end(),
                     [&](const std::string& name) { return is_named(module, name); });
}

std::string matrix_name(const Module& module, const char* which) {
  return concat(module.layer, ".lora_", which, ".", module.target.part);
}

Shape b_shape(const Module& module, int64_t rank) {
  Shape shape = module.weight;
  shape[shape.rank - 1] = rank;
  if (module.target.slots > 0) shape[shape.rank - 3] = module.target.slots;
  return shape;
}

double scale_of(const LoraSettings& settings) {
  const auto rank = static_cast<double>(settings.rank);
  return settings.alpha / (settings.rslora ? std::sqrt(rank) : rank);
}

/// Which rows of our B are which rows of the Hugging Face B, in runs. `ours` counts from the part's first
/// row.
std::vector<RowRun> part_runs(const Module& module) {
  std::vector<RowRun> runs = module.rows.runs;
  std::sort(runs.begin(), runs.end(), [](const RowRun& a, const RowRun& b) { return a.ours < b.ours; });
  int64_t at = 0;
  for (RowRun& run : runs) {
    run.ours = at;
    at += run.rows;
  }
  return runs;
}

/// Reorders rows of `rank` numbers from our order to the Hugging Face one or, with `to_ours`, the other way
/// round.
std::vector<float> moved_rows(const std::vector<float>& from, const Module& module, int64_t rank,
                              bool to_ours) {
  std::vector<float> to(from.size());
  for (const RowRun& run : part_runs(module)) {
    const int64_t source = to_ours ? run.theirs : run.ours, target = to_ours ? run.ours : run.theirs;
    std::copy_n(from.begin() + source * rank, run.rows * rank, to.begin() + target * rank);
  }
  return to;
}

Json config_json(const ModelConfig& config, const LoraSettings& settings, const std::string& base) {
  Json::Array modules;
  const std::vector<Module> all = first_modules(config);
  for (const Module& module : all)
    if (is_wanted(module, settings)) modules.emplace_back(short_name(module, all));
  const bool transposed = !all.empty() && all.front().rows.transposed;
  return Json(Json::Object{{"alpha_pattern", Json::object()},
                           {"base_model_name_or_path", base},
                           {"bias", "none"},
                           {"fan_in_fan_out", transposed},
                           {"inference_mode", true},
                           {"init_lora_weights", true},
                           {"layers_pattern", nullptr},
                           {"layers_to_transform", nullptr},
                           {"lora_alpha", settings.alpha},
                           {"lora_dropout", settings.dropout},
                           {"modules_to_save", nullptr},
                           {"peft_type", kPeftLora},
                           {"r", settings.rank},
                           {"rank_pattern", Json::object()},
                           {"revision", nullptr},
                           {"target_modules", Json(std::move(modules))},
                           {"task_type", "CAUSAL_LM"},
                           {"use_dora", false},
                           {"use_rslora", settings.rslora}});
}

}  // namespace

std::vector<std::string> linear_modules(const ModelConfig& config) {
  const std::vector<Module> all = first_modules(config);
  std::vector<std::string> names;
  for (const Module& module : all) names.push_back(short_name(module, all));
  return names;
}

TuningPlan lora_plan(const ModelConfig& config, const LoraSettings& settings) {
  const std::vector<Module> all = first_modules(config);
  for (const std::string& name : settings.modules)
    if (std::none_of(all.begin(), all.end(), [&](const Module& module) { return is_named(module, name); }))
      fail(ErrorKind::kUsage, "--target-modules ", quote(name),
           ": the model has no such linear layer; it has ", join(linear_modules(config), ", "),
           ", or all-linear");
  TuningPlan plan{
      .frozen = true, .rank = settings.rank, .scale = scale_of(settings), .dropout = settings.dropout};
  for (const Module& module : all)
    if (is_wanted(module, settings)) plan.targets.push_back(module.target);
  return plan;
}

namespace {

double dropout_of(const Adapter& adapter) {
  const Json* const dropout = adapter.config().find("lora_dropout");
  if (!dropout || !dropout->is_number()) return 0;
  const double value = dropout->as_double();
  if (!(value >= 0 && value < 1))
    fail(ErrorKind::kData, adapter.path(), ": \"lora_dropout\" is ", dropout->dump(),
         ", wanted at least 0 and less than 1");
  return value;
}

}  // namespace

LoraSettings settings_of(const Adapter& adapter, const ModelConfig& config) {
  if (adapter.modules().empty())
    fail(ErrorKind::kUsage, adapter.path(), ": is an adapter of kind ", adapter.kind(),
         "; to train it further, give --prefix-tuning");
  const Adapter::Module& first = adapter.modules().front();
  LoraSettings settings{.rank = first.rank};
  const Json* rslora = adapter.config().find("use_rslora");
  settings.rslora = rslora && rslora->is_bool() && rslora->as_bool();
  settings.alpha = first.alpha;
  settings.dropout = dropout_of(adapter);
  std::set<std::string> names;
  const std::vector<Module> all = first_modules(config);
  for (const Adapter::Module& module : adapter.modules()) {
    if (module.rank != first.rank || module.scale != first.scale)
      fail(ErrorKind::kData, adapter.path(), ": ", quote(module.name), " has rank ", module.rank,
           " and scale ", module.scale, ", ", quote(first.name), " ", first.rank, " and ", first.scale,
           "; only one rank and scale can be trained on");
    for (const Module& known : all)
      if (known.theirs == module.name) names.insert(short_name(known, all));
  }
  settings.modules.assign(names.begin(), names.end());
  return settings;
}

std::unique_ptr<TensorFile> adapter_params(const Adapter& adapter, const ModelConfig& config,
                                           const TuningPlan& plan) {
  auto out = std::make_unique<MemoryTensors>(adapter.path());
  std::map<std::string, const Adapter::Module*> left;
  for (const Adapter::Module& module : adapter.modules()) left[module.name] = &module;
  for (const Module& module : modules_of(config)) {
    const bool planned =
        std::any_of(plan.targets.begin(), plan.targets.end(), [&](const LowRankTarget& target) {
          return target.layer == module.target.layer && target.part == module.target.part;
        });
    const auto found = left.find(module.theirs);
    if (planned != (found != left.end()))
      fail(ErrorKind::kData, adapter.path(), planned ? ": has no matrices of " : ": has matrices of ",
           quote(module.theirs),
           planned ? ", which --target-modules names" : ", which --target-modules does not name");
    if (!planned) continue;
    const Adapter::Module& theirs = *found->second;
    if (theirs.rank != plan.rank || std::abs(theirs.scale - plan.scale) > 1e-9 * plan.scale)
      fail(ErrorKind::kData, adapter.path(), ": ", quote(theirs.name), " has rank ", theirs.rank,
           " and scale ", theirs.scale, ", the options say ", plan.rank, " and ", plan.scale);
    if (theirs.in != module.rows.columns || theirs.out != module.rows.rows())
      fail(ErrorKind::kData, adapter.path(), ": ", quote(theirs.name), " takes ", theirs.in, " and gives ",
           theirs.out, " values, the model's takes ", module.rows.columns, " and gives ", module.rows.rows());
    const Shape a{theirs.rank, theirs.in}, b{theirs.out, theirs.rank};
    out->put(matrix_name(module, "A"), a, read_whole(adapter.tensors(), theirs.a, a));
    out->put(matrix_name(module, "B"), b_shape(module, theirs.rank),
             moved_rows(read_whole(adapter.tensors(), theirs.b, b), module, theirs.rank, true));
    left.erase(found);
  }
  if (!left.empty())
    fail(ErrorKind::kData, adapter.path(), ": module ", quote(left.begin()->first), " is not in the model");
  return out;
}

void write_adapter(const TensorFile& checkpoint, const ModelConfig& config, const LoraSettings& settings,
                   const AdapterOutput& output) {
  struct Matrix {
    const Module* module;
    bool first;
  };
  const std::vector<Module> all = modules_of(config);
  std::map<std::string, Matrix> matrices;
  std::vector<TensorSpec> specs;
  for (const Module& module : all) {
    if (!is_wanted(module, settings)) continue;
    for (const bool first : {true, false}) {
      const Shape shape =
          first ? Shape{settings.rank, module.rows.columns} : Shape{module.rows.rows(), settings.rank};
      specs.push_back(
          {concat("base_model.model.", module.theirs, first ? ".lora_A.weight" : ".lora_B.weight"),
           DType::kF32, shape});
      matrices[specs.back().name] = {&module, first};
    }
  }
  AdapterWriter adapter(output.folder, specs);
  for (const TensorSpec& spec : adapter.weights().order()) {
    const auto& [module, first] = matrices.at(spec.name);
    std::vector<float> values =
        first ? read_whole(checkpoint, matrix_name(*module, "A"), spec.shape)
              : moved_rows(read_whole(checkpoint, matrix_name(*module, "B"), b_shape(*module, settings.rank)),
                           *module, settings.rank, false);
    adapter.weights().write(spec.name, values.data(), values.size() * sizeof(float));
  }
  adapter.finish(config_json(config, settings, output.base));
}

}  // namespace megalith

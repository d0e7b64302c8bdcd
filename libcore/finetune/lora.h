#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/model_config.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/json/json.h"
#include "libcore/model/params.h"

namespace megalith {

/// peft's name for all linear layers; it can replace the names of modules.
inline constexpr const char* kAllLinear = "all-linear";
inline constexpr int64_t kLoraRank = 8;  // default rank

/// The settings of a LoRA adapter. peft calls them r, lora_alpha, lora_dropout, use_rslora and
/// target_modules.
struct LoraSettings {
  int64_t rank = kLoraRank;
  double alpha = 16, dropout = 0;
  bool rslora = false;  // scale alpha / sqrt(rank) instead of alpha / rank
  // The modules to adapt. Each is named by the end of its Hugging Face name.
  std::vector<std::string> modules = {kAllLinear};
};

/// The Hugging Face names of all linear layers in a transformer layer ("q_proj", "attn.c_proj" …), in order.
std::vector<std::string> linear_modules(const ModelConfig& config);

/// The parameters that the adapter declares in the model. A module is named by the end of its name, as in
/// peft: "c_proj" means both modules of GPT-2 with this name. If the model has no module of a name, throws
/// kUsage with a list of its modules.
TuningPlan lora_plan(const ModelConfig& config, const LoraSettings& settings);

/// The matrices of a peft folder, with the names and shapes of the plan's parameters, for load_params(). Both
/// arguments must outlive the result. kData if the adapter's modules, rank or scale differ from the plan's.
std::unique_ptr<TensorFile> adapter_params(const Adapter& adapter, const ModelConfig& config,
                                           const TuningPlan& plan);
/// The settings of an existing adapter. kData if its modules differ in rank or scale.
LoraSettings settings_of(const Adapter& adapter, const ModelConfig& config);

struct AdapterOutput {
  std::string folder;
  std::string base;  // the base model's name in adapter_config.json
};
/// Writes the adapter of a checkpoint as a peft folder. Replaces existing files of the adapter, each
/// atomically; other files in the folder stay.
void write_adapter(const TensorFile& checkpoint, const ModelConfig& config, const LoraSettings& settings,
                   const AdapterOutput& output);

}  // namespace megalith

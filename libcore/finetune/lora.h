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

/// In place of module names: all linear layers (peft's word).
inline constexpr const char* kAllLinear = "all-linear";
inline constexpr int64_t kLoraRank = 8;  // the default rank

/// The settings of a LoRA adapter, in peft's words.
struct LoraSettings {
  int64_t rank = kLoraRank;
  double alpha = 16, dropout = 0;
  bool rslora = false;  // scale alpha / sqrt(rank) instead of alpha / rank
  // The modules to adapt, by the ends of their Hugging Face names.
  std::vector<std::string> modules = {kAllLinear};
};

/// The Hugging Face names of all linear layers in a transformer layer ("q_proj", "attn.c_proj" …), in order.
std::vector<std::string> linear_modules(const ModelConfig& config);

/// The parameters to declare in the model. A module is named by the end of its name, as in peft: "c_proj"
/// means both of GPT-2's. If the model has no such module, kUsage lists those that it has.
TuningPlan lora_plan(const ModelConfig& config, const LoraSettings& settings);

/// A peft folder's matrices with the names and shapes of the plan's parameters, for load_params(). Both
/// arguments must outlive the result. kData if the adapter's modules, rank or scale differ from the plan's.
std::unique_ptr<TensorFile> adapter_params(const Adapter& adapter, const ModelConfig& config,
                                           const TuningPlan& plan);
/// The settings that an adapter was made with; kData if its modules differ in rank or scale.
LoraSettings settings_of(const Adapter& adapter, const ModelConfig& config);

struct AdapterOutput {
  std::string folder;
  std::string base;  // the base model's name in adapter_config.json
};
/// Writes the adapter in a checkpoint as a peft folder. Replaces existing files of the adapter, each
/// atomically; other files in the folder stay.
void write_adapter(const TensorFile& checkpoint, const ModelConfig& config, const LoraSettings& settings,
                   const AdapterOutput& output);

}  // namespace megalith

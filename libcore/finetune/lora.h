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

/// In place of modules' names: every linear layer (peft's word).
inline constexpr const char* kAllLinear = "all-linear";
inline constexpr int64_t kLoraRank = 8;  // where nothing says another one

/// What an adapter of LoRA is made of, in peft's words.
struct LoraSettings {
  int64_t rank = kLoraRank;
  double alpha = 16, dropout = 0;
  bool rslora = false;  // scale alpha / sqrt(rank) in place of alpha / rank
  // Ends of names as the model's Hugging Face form has them.
  std::vector<std::string> modules = {kAllLinear};
};

/// Every linear layer of a transformer layer by its Hugging Face name ("q_proj", "attn.c_proj" …), in order.
std::vector<std::string> linear_modules(const ModelConfig& config);

/// What is to be declared in the model. A module is named by the end of its name, as with peft: "c_proj"
/// means both of GPT-2's. kUsage names a module that the model lacks, with those that it has.
TuningPlan lora_plan(const ModelConfig& config, const LoraSettings& settings);

/// A peft folder's matrices under the names and shapes that the plan's parameters have, for load_params().
/// Both must outlive it. kData when the adapter's modules, rank or scale are not the plan's.
std::unique_ptr<TensorFile> adapter_params(const Adapter& adapter, const ModelConfig& config,
                                           const TuningPlan& plan);
/// The settings that an adapter was made with; kData when its modules differ in rank or scale.
LoraSettings settings_of(const Adapter& adapter, const ModelConfig& config);

struct AdapterOutput {
  std::string folder;
  std::string base;  // what adapter_config.json calls the base model
};
/// Writes the adapter that a checkpoint holds as a folder of peft. What stood under these names is replaced,
/// each file at once; other files of the folder stay.
void write_adapter(const TensorFile& checkpoint, const ModelConfig& config, const LoraSettings& settings,
                   const AdapterOutput& output);

}  // namespace megalith

#pragma once

#include <memory>
#include <string>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/model_config.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/finetune/lora.h"

namespace megalith {

/// The parameters that prefix tuning (Li and Liang 2021) declares in the model: keys and values for
/// `positions` positions before each sequence, in every layer, without a projection.
TuningPlan prefix_plan(int64_t positions);

/// The prefix in a peft folder, with the names and shapes of the plan's parameters, for load_params(). kData
/// if the prefix has another model's shape. The adapter must outlive the result.
std::unique_ptr<TensorFile> prefix_params(const Adapter& adapter, const ModelConfig& config);

/// Writes the prefix of a checkpoint as a peft folder. Replaces existing files as write_adapter() does.
void write_prefix(const TensorFile& checkpoint, const ModelConfig& config, int64_t positions,
                  const AdapterOutput& output);

}  // namespace megalith

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

/// A peft folder's prefix with the names and shapes of the plan's parameters, for load_params(); kData if it
/// has another model's shape. The adapter must outlive the result.
std::unique_ptr<TensorFile> prefix_params(const Adapter& adapter, const ModelConfig& config);

/// Writes the prefix in a checkpoint as a peft folder, as write_adapter() does.
void write_prefix(const TensorFile& checkpoint, const ModelConfig& config, int64_t positions,
                  const AdapterOutput& output);

}  // namespace megalith

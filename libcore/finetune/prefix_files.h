#pragma once

#include <memory>
#include <string>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/model_config.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/finetune/lora.h"

namespace megalith {

/// What prefix tuning (Li and Liang 2021) declares in the model: keys and values of `positions` positions
/// before each sequence, in every layer, without a projection.
TuningPlan prefix_plan(int64_t positions);

/// A peft folder's prefix under the names and shapes that the plan's parameters have, for load_params();
/// kData when it is of another model's shape. The adapter must outlive it.
std::unique_ptr<TensorFile> prefix_params(const Adapter& adapter, const ModelConfig& config);

/// Writes the prefix that a checkpoint holds as a folder of peft, as write_adapter().
void write_prefix(const TensorFile& checkpoint, const ModelConfig& config, int64_t positions,
                  const AdapterOutput& output);

}  // namespace megalith

#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/json/json.h"

namespace megalith {

/// A peft folder that is being written: adapter_model.safetensors and adapter_config.json. A folder without
/// the latter is not an adapter. An existing adapter stays whole until finish(). A kill leaves the old
/// adapter, the new one, or none, but never the settings of one with the weights of the other, whose scale
/// would be wrong without any message.
class AdapterWriter {
 public:
  /// Makes the folder if needed. The caller holds its lock. kIo.
  AdapterWriter(const std::string& folder, std::vector<TensorSpec> tensors);

  SafetensorsWriter& weights() { return weights_; }
  void finish(const Json& config);

 private:
  std::string folder_;
  SafetensorsWriter weights_;
};

}  // namespace megalith

#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/json/json.h"

namespace megalith {

/// Writes a peft folder: adapter_model.safetensors and adapter_config.json. Without adapter_config.json a
/// folder is not an adapter. An existing adapter stays whole until finish(). If the process is killed, the
/// old adapter remains, or the new one, or none. The settings of one never remain with the weights of the
/// other, because their scale would then be wrong without any message.
class AdapterWriter {
 public:
  /// Creates the folder if it is missing. The caller holds its lock. kIo.
  AdapterWriter(const std::string& folder, std::vector<TensorSpec> tensors);

  SafetensorsWriter& weights() { return weights_; }
  void finish(const Json& config);

 private:
  std::string folder_;
  SafetensorsWriter weights_;
};

}  // namespace megalith

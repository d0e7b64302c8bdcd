#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/json/json.h"

namespace megalith {

/// A folder of peft while it is written: adapter_model.safetensors, and adapter_config.json, without which it
/// is no adapter. One that is there stays whole until finish(), and a kill leaves the old one, the new one,
/// or none: never one's settings with the other's weights, whose scale would be wrong without a word.
class AdapterWriter {
 public:
  /// Makes the folder, whose lock the caller has. kIo.
  AdapterWriter(const std::string& folder, std::vector<TensorSpec> tensors);

  SafetensorsWriter& weights() { return weights_; }
  void finish(const Json& config);

 private:
  std::string folder_;
  SafetensorsWriter weights_;
};

}  // namespace megalith

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/json/json.h"

namespace megalith {

/// A parameter of a rank's file, in the order of the file's "model": the order of Megatron's
/// named_parameters(), which its optimizer numbers.
struct RankParam {
  std::string key;   // as the file calls it
  std::string name;  // as its share does
  const TorchTensor* tensor;
};

/// What a rank's file says of Adam: the state of each parameter, by its name. Nothing when the file has none
/// that is read here.
struct RankOptimizer {
  std::map<std::string, TorchTensor> m = {}, v = {}, masters = {};  // no masters of an fp32 model
  int64_t steps = 0;
  Json loss_scale = {};   // scale, growth_tracker, hysteresis_tracker; null: none
  std::string none = {};  // why there is none; then nothing above
};

/// Reads "optimizer" of a rank's file: FP32Optimizer's or Float16OptimizerWithFloat16Params' state of
/// megatron-core, with torch's, apex' or Transformer Engine's Adam. A distributed optimizer keeps its state
/// elsewhere and in another form: `none` says so. kData when the state does not fit the parameters.
RankOptimizer read_rank_optimizer(const TorchFile& file, const std::vector<RankParam>& params);

}  // namespace megalith

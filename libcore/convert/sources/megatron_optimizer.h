#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/json/json.h"

namespace megalith {

/// A parameter of a rank's file, in the order of the file's "model". This is the order of Megatron's
/// named_parameters(), by which its optimizer numbers them.
struct RankParam {
  std::string key;   // in the file
  std::string name;  // our name, with the file's layer number
  const TorchTensor* tensor;
};

/// Adam's state in a rank's file, for each parameter by its name. Empty if the file has none in a readable
/// form.
struct RankOptimizer {
  std::map<std::string, TorchTensor> m = {}, v = {}, masters = {};  // an fp32 model has no masters
  int64_t steps = 0;
  Json loss_scale = {};   // scale, growth_tracker, hysteresis_tracker; null: none
  std::string none = {};  // why the state is not there; then all members above are empty
};

/// Reads "optimizer" of a rank's file: the state of megatron-core's FP32Optimizer or
/// Float16OptimizerWithFloat16Params, with torch's, apex' or Transformer Engine's Adam. A distributed
/// optimizer keeps its state elsewhere and in another form: RankOptimizer::none then says so. kData if the
/// state does not fit the parameters.
RankOptimizer read_rank_optimizer(const TorchFile& file, const std::vector<RankParam>& params);

}  // namespace megalith

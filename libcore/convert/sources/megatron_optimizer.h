#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/json/json.h"

namespace megalith {

/// A parameter in a rank's file. Parameters are listed in the order of the file's "model", which is that of
/// Megatron's named_parameters(): the optimizer numbers them in this order.
struct RankParam {
  std::string key;   // its key in the file
  std::string name;  // our name for it, with the file's layer number
  const TorchTensor* tensor;
};

/// Adam's state in a rank's file: tensors by the names of their parameters. Empty if the file has no state in
/// a readable form.
struct RankOptimizer {
  std::map<std::string, TorchTensor> m = {}, v = {}, masters = {};  // an fp32 model has no masters
  int64_t steps = 0;
  // its members are scale, growth_tracker and hysteresis_tracker; null if there is none
  Json loss_scale = {};
  std::string none = {};  // why there is no state; if set, all members above are empty
};

/// Reads "optimizer" of a rank's file: the state of megatron-core's FP32Optimizer or
/// Float16OptimizerWithFloat16Params, with the Adam of torch, apex or Transformer Engine. A distributed
/// optimizer keeps its state elsewhere and in another form; then RankOptimizer::none says so. Throws kData if
/// the state does not fit the parameters.
RankOptimizer read_rank_optimizer(const TorchFile& file, const std::vector<RankParam>& params);

}  // namespace megalith

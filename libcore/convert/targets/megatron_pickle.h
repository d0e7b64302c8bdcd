#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"
#include "libcore/convert/targets/megatron.h"

namespace megalith {

/// Sets qkv_bias if the linear layers have biases: in Megatron these include QKV's bias, so the args must set
/// both options.
ModelConfig with_qkv_bias(ModelConfig config);

/// A rank's file of a Megatron checkpoint: its parameters in the order of Megatron's named_parameters(). With
/// a run's optimizer, their first moments, second moments and (for a 16-bit model) masters follow, each in
/// that order.
struct MegatronRankFile {
  OutputFile file;
  size_t params = 0;  // how many of file.tensors are parameters
  int rank = 0;       // among the ranks of one copy of the model
};

/// The pickle of a rank's file. Storage i is tensor i; a dynamic loss scale adds one more, [1] f32.
std::string pickle_of(const MegatronRankFile& rank, const Conversion& conversion,
                      const MegatronLayout& layout, const MegatronRun& run);

}  // namespace megalith

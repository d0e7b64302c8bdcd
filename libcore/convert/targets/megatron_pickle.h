#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"
#include "libcore/convert/targets/megatron.h"

namespace megalith {

/// Megatron's biases of the linear layers include QKV's, so its args must say both.
ModelConfig with_qkv_bias(ModelConfig config);

/// A rank's file of a Megatron checkpoint: its parameters in the order of Megatron's named_parameters(). With
/// a run's optimizer, their first moments, second moments and (for a 16-bit model) masters follow, each in
/// that order.
struct MegatronRankFile {
  OutputFile file;
  size_t params = 0;  // how many of file.tensors are parameters
  int rank = 0;       // in the world of one copy of the model
};

/// The pickle of such a file. Storage i is tensor i; a dynamic loss scale adds one more, [1] f32.
std::string pickle_of(const MegatronRankFile& rank, const Conversion& conversion,
                      const MegatronLayout& layout, const MegatronRun& run);

}  // namespace megalith

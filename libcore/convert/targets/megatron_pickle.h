#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"
#include "libcore/convert/targets/megatron.h"

namespace megalith {

/// Sets qkv_bias if the linear layers have biases: in Megatron, QKV's bias is one of these, so the args must
/// set both options.
ModelConfig with_qkv_bias(ModelConfig config);

/// The tensors of a rank's file: its parameters in the order of Megatron's named_parameters(). If the run's
/// optimizer is written, the parameters' first moments, second moments and (for a 16-bit model) masters
/// follow, each in that order.
struct MegatronRankFile {
  OutputFile file;
  size_t params = 0;  // number of tensors in file.tensors that are parameters
  int rank = 0;       // number of the rank among those of one copy of the model
};

/// The pickle of a rank's file. Storage i is tensor i. A dynamic loss scale adds one more storage, [1] f32.
std::string pickle_of(const MegatronRankFile& rank, const Conversion& conversion,
                      const MegatronLayout& layout, const MegatronRun& run);

}  // namespace megalith

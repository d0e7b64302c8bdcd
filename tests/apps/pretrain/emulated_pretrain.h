#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {

/// The greatest |a - b| / |a|.
inline double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::abs(a[i]);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

/// Lets programs load emulated devices, whose work runs in this order, during its lifetime. No file keeps a
/// choice of algorithms.
class EmulatedDeviceForPrograms {
 public:
  explicit EmulatedDeviceForPrograms(int order = 1, int devices = 1)
      : gpus_(order, devices), cache_("MEGALITH_CACHE_DIR", "/dev/null/none") {}

 private:
  EmulatedGpus gpus_;
  Variable cache_;
};

/// The options of small models, which begin and end with a space.
class EmulatedPretrain : public PretrainApp {
 protected:
  const std::string kGpt2 = " --attention-dropout 0.1 --hidden-dropout 0.1 ";
  const std::string kLlama =
      " --num-attention-heads 4 --group-query-attention --num-query-groups 2 --swiglu --ffn-hidden-size 48 "
      "--normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights "
      "--disable-bias-linear --attention-dropout 0 --hidden-dropout 0 ";
  const std::string kQwen3 = kLlama + "--qk-layernorm --kv-channels 16 ";
  const std::string kPhi3 =
      kLlama +
      "--kv-channels 8 --rotary-percent 0.5 --rope-scaling-type longrope --rope-short-factors 1,1 "
      "--rope-long-factors 1.5,8 --rope-scaling-original-positions 4 ";
  const std::string kGptNeoX =
      " --position-embedding-type rope --rotary-percent 0.5 --kv-channels 8 --parallel-residual "
      "--attention-dropout 0 --hidden-dropout 0 ";
  const std::string kGranite = kLlama +
                               "--embedding-multiplier 3 --residual-multiplier 0.6 --attention-multiplier "
                               "0.3 --logits-scaling 1.5 ";
  const std::string kOlmo3 = kLlama +
                             "--qk-layernorm --qk-norm-all-heads --norm-placement after --sliding-window 5 "
                             "--window-attn-skip-freq 2 ";
};

}  // namespace megalith::test

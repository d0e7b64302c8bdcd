#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/model/param_store.h"
#include "libcore/model/stage.h"

namespace megalith::test {

/// Configurations with a few hundred parameters that use everything in their family.
ModelConfig tiny_gpt2();   // learned positions, LayerNorm, GELU, biases, tied head; dropout off
ModelConfig tiny_llama();  // RoPE, RMSNorm, SwiGLU, grouped queries, untied head

/// A model on the CPU, with its parameters placed and memory to run it.
struct TinyModel {
  explicit TinyModel(const ModelConfig&, const RecomputePlan& = {}, DType = DType::kF32);

  /// The sum of grad_scale * loss over the tokens. With `training`, also adds to the gradients.
  double loss(const Microbatch&, bool training);
  Ctx ctx(bool training);
  std::vector<float> read(ConstView) const;     // copies to the host
  double sum(ConstView) const;                  // of an f32 tensor
  void write(View, const std::vector<float>&);  // copies from the host

  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream{*backend};
  std::unique_ptr<Communicator> alone = make_self_comm();
  Region region{*alone};
  ParamTable table;
  Stage stage;
  ParamStore store;
  Arena scratch;
  Tape tape;
};

/// Moves norm weights and biases away from their neutral values, as training would.
void perturb(TinyModel&);

/// Tokens, labels, mask and sample numbers in host memory.
struct HostBatch {
  HostBatch(const ModelConfig& config, int64_t rows, int64_t columns);
  Microbatch view() const;

  int64_t s, b;
  std::vector<int32_t> tokens, labels;
  std::vector<float> mask;  // with a few zeros
  std::vector<int64_t> samples;
};

}  // namespace megalith::test

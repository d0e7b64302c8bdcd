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

/// A placed model on the CPU with memory to run it.
struct TinyModel {
  explicit TinyModel(const ModelConfig&, const RecomputePlan& = {}, DType = DType::kF32);

  /// Sum of grad_scale * token losses; with training the gradients are computed too (added to).
  double loss(const Microbatch&, bool training);
  Ctx ctx(bool training);
  std::vector<float> read(ConstView) const;     // to the host
  double sum(ConstView) const;                  // of f32
  void write(View, const std::vector<float>&);  // from it

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
  std::vector<float> mask;  // a few zeros
  std::vector<int64_t> samples;
};

}  // namespace megalith::test

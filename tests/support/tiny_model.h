#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/model/param_store.h"
#include "libcore/model/stage.h"

namespace megalith::test {

/// Configurations of models with a few hundred parameters that use every feature of their family.
ModelConfig tiny_gpt2();  // learned positions, LayerNorm, GELU, biases, tied head; dropout off
/// GPT-NeoX's parts: parallel branches, half of each head rotated, biases, an untied head.
ModelConfig tiny_gpt_neox();
ModelConfig
tiny_falcon();  // Falcon 7B's: parallel branches after one norm, one key and value head, a tied head
ModelConfig tiny_qwen3();    // as tiny_llama(), with norms of queries and keys and a tied head
ModelConfig tiny_olmo2();    // as tiny_llama(), with norms after the branches, and over all heads
ModelConfig tiny_granite();  // as tiny_llama(), with factors of embedding, branches, scores and logits
ModelConfig tiny_llama();    // RoPE, RMSNorm, SwiGLU, grouped queries, untied head

/// A model on the CPU, with its parameters and the memory that it needs to run.
struct TinyModel {
  explicit TinyModel(const ModelConfig&, const RecomputePlan& = {}, DType = DType::kF32);

  /// Returns the sum of grad_scale * loss over the tokens. With `training`, also adds to the gradients.
  double loss(const Microbatch&, bool training);
  Ctx ctx(bool training);
  std::vector<float> read(ConstView) const;     // copies the tensor to the host
  double sum(ConstView) const;                  // the sum of an f32 tensor
  void write(View, const std::vector<float>&);  // copies the values from the host

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
  std::vector<float> mask;  // some of the values are zero
  std::vector<int64_t> samples;
};

}  // namespace megalith::test

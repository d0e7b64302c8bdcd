#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/model/measure.h"

namespace megalith {

/// Assumed rates of an H200, whose data sheet has 989 TFLOP/s and 4.8 TB/s. Nothing here is measured by us.
struct Rates {
  // cuBLASLt reaches 769 to 798 TFLOP/s with 8192^3 (published for this GPU); layers have smaller matrices.
  double products, head_products;
  double attention, attention_grad;
  // cuDNN's RMSNorm reaches 3.7 and its gradient 3.8 TB/s there, a copy 4.3.
  double memory = 3.6e12, optimizer_memory = 3.4e12;
  double gap = 1e-6;  // seconds between two kernels
};

/// A state of the code, of which the second is today's, and the third where cuDNN is there: each is faster at
/// something than the one before.
enum class GpuStage { kNoEpilogues, kOwnAttention, kFixedCudnn, kCudnn, kTunedProducts, kGraph };
constexpr GpuStage kGpuStages[] = {GpuStage::kNoEpilogues, GpuStage::kOwnAttention,  GpuStage::kFixedCudnn,
                                   GpuStage::kCudnn,       GpuStage::kTunedProducts, GpuStage::kGraph};
const char* name_of(GpuStage stage);

struct GpuModel {
  const char* name;
  ModelConfig config;
  int64_t batch;    // sequences of a micro-batch
  double products;  // assumed operations per second of the layers' products
};
/// GPT-2 124M and 1.5B, LLaMA-7B.
std::vector<GpuModel> gpu_models();

/// One op in a part of a model, for one token.
struct OpTime {
  std::string part, op;
  int64_t calls;  // for a micro-batch
  double bytes, flops, seconds;
};
/// A training step in bf16 of 524,288 tokens, for one token: the sum over its ops of the time of their memory
/// traffic or of their products, whichever is longer, and of a gap for each kernel; then the optimizer. The
/// ops, their bytes and their products are those of the real Stage on the dry backend; tests hold the
/// kernels' traffic and products to these (tests/ops/cuda).
struct StepTime {
  std::vector<OpTime> ops;
  double optimizer = 0, seconds = 0;
  double mfu = 0;  // of the dense peak; attention counts all positions
};
StepTime step_time(const GpuModel& model, GpuStage stage);

}  // namespace megalith

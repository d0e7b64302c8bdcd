#include "bench/gpu_step/step_table.h"

#include <algorithm>
#include <map>

namespace megalith {
namespace {

ModelConfig gpt2(int layers, int hidden, int heads) {
  ModelConfig config;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.seq_length = config.max_positions = 1024;
  config.vocab_size = 50257;
  config.attention_dropout = config.hidden_dropout = 0;
  return config;
}

ModelConfig llama_7b() {
  ModelConfig config = gpt2(32, 4096, 32);
  config.ffn_hidden = 11008;
  config.seq_length = config.max_positions = 2048;
  config.vocab_size = 32000;
  config.swiglu = config.untied_head = true;
  config.linear_bias = false;
  config.norm = Normalization::kRmsNorm;
  config.position = PositionEmbedding::kRope;
  return config;
}

/// Rates of attention and its gradient. Ours are goals. cuDNN's are published for an H200 (NVIDIA's
/// cudnn-frontend, benchmark of cuDNN 9.19.1): 484 and 370, or 300 if its gradient is to repeat bit for bit,
/// with heads of 128 columns at 2048 positions; with 64 columns at 1024 positions 0.85 of what it reaches at
/// 2048.
struct AttentionRates {
  double forward, grad;
};
AttentionRates attention_rates(GpuStage stage, bool wide_heads) {
  if (stage <= GpuStage::kOwnAttention)
    return wide_heads ? AttentionRates{250e12, 160e12} : AttentionRates{200e12, 130e12};
  if (stage == GpuStage::kFixedCudnn)
    return wide_heads ? AttentionRates{484e12, 300e12} : AttentionRates{264e12, 190e12};
  return wide_heads ? AttentionRates{484e12, 370e12} : AttentionRates{264e12, 224e12};
}

/// What a part of the model needs for a micro-batch.
StageCost cost_of(const GpuModel& model, GpuStage stage, const Layers& layers) {
  return measure({.model = model.config,
                  .layers = layers,
                  .split = {.vocabulary = {.padded = true, .logits_bytes = int64_t{1} << 30}},
                  .dtype = DType::kBf16,
                  .micro_batch = model.batch,
                  .on_gpu = stage > GpuStage::kNoEpilogues});
}

/// The number of kernels that an op launches on a GPU.
int kernels_of(const std::string& op) {
  static const std::map<std::string, int> kSeveral = {{BiasGrad::kName, 2},    {LayerNormGrad::kName, 2},
                                                      {RmsNormGrad::kName, 2}, {AttentionGrad::kName, 3},
                                                      {SumSquares::kName, 2},  {EmbeddingGrad::kName, 11}};
  const auto found = kSeveral.find(op);
  return found == kSeveral.end() ? 1 : found->second;
}

double seconds_of(const std::string& op, const Trace::Entry& entry, const Rates& rates, bool head) {
  double products = 0;
  if (op == Gemm::kName) products = entry.cost.flops / (head ? rates.head_products : rates.products);
  if (op == Attention::kName) products = entry.cost.flops / rates.attention;
  if (op == AttentionGrad::kName) products = entry.cost.flops / rates.attention_grad;
  return std::max(entry.cost.bytes / rates.memory, products) +
         static_cast<double>(entry.calls * kernels_of(op)) * rates.gap;
}

/// The matrices that the epilogues write and read: GELU's inputs. Nothing is assumed to hide them, as a tile
/// of a product ends with its epilogue. The table counts them once more among the products' bytes, which take
/// less time than the products' operations.
double epilogue_bytes(const GpuModel& model, GpuStage stage) {
  constexpr double kBytes = 2 * 2;  // bf16, forward and backward
  const ModelConfig& c = model.config;
  return stage == GpuStage::kNoEpilogues || c.swiglu ? 0
                                                     : kBytes * c.layers * static_cast<double>(c.ffn_hidden);
}

constexpr double kTokensOfStep = 524288, kDensePeak = 989.4e12;

/// The optimizer sets the gradient to 0 and reads it twice (norm, update); it reads and writes master, m and
/// v, and writes the bf16 value: 38 bytes a parameter.
double optimizer_seconds(double parameters, const Rates& rates) {
  constexpr double kBytes = 38;
  return parameters * kBytes / rates.optimizer_memory / kTokensOfStep;
}

/// The operations of a token in products and attention, forward and backward. Attention counts all positions,
/// not only those that a token sees, as published figures do.
double full_flops(const GpuModel& model, double parameters) {
  const ModelConfig& c = model.config;
  const double lookup = c.untied_head ? static_cast<double>(c.vocab_size) * c.hidden : 0;
  return 6 * (parameters - lookup) + 12.0 * c.layers * c.hidden * c.seq_length;
}

Rates rates_of(const GpuModel& model, GpuStage stage) {
  // What is assumed to be gained where the fastest algorithm of each shape is chosen by timing, and by a
  // graph in place of launches.
  constexpr double kTuned = 1.05, kTunedHead = 1.04, kGraphGap = 0.2;
  const AttentionRates attention = attention_rates(stage, model.config.kv_channels > 64);
  const bool tuned = stage >= GpuStage::kTunedProducts;
  Rates rates{.products = model.products * (tuned ? kTuned : 1),
              .head_products = 620e12 * (tuned ? kTunedHead : 1),
              .attention = attention.forward,
              .attention_grad = attention.grad};
  if (stage == GpuStage::kGraph) rates.gap *= kGraphGap;
  return rates;
}

}  // namespace

const char* name_of(GpuStage stage) {
  switch (stage) {
    case GpuStage::kNoEpilogues:
      return "own attention, no epilogues";
    case GpuStage::kOwnAttention:
      return "own attention";
    case GpuStage::kFixedCudnn:
      return "cuDNN's attention, which repeats bit for bit";
    case GpuStage::kCudnn:
      return "cuDNN's attention";
    case GpuStage::kTunedProducts:
      return "cuDNN's attention, tuned products";
    case GpuStage::kGraph:
      return "cuDNN's attention, tuned products, a graph";
  }
  return "";
}

std::vector<GpuModel> gpu_models() {
  std::vector<GpuModel> models = {{"gpt2-124m", gpt2(12, 768, 12), 64, 560e12},
                                  {"gpt2-1.5b", gpt2(48, 1600, 25), 32, 620e12},
                                  {"llama-7b", llama_7b(), 2, 650e12}};
  for (GpuModel& model : models) model.config.finish();
  return models;
}

StepTime step_time(const GpuModel& model, GpuStage stage) {
  const Rates rates = rates_of(model, stage);
  const int layers = model.config.layers;
  const auto tokens = static_cast<double>(model.config.seq_length * model.batch);
  StepTime step;
  const auto add_part = [&](const char* part, const Layers& which) {
    for (const auto& [op, entry] : cost_of(model, stage, which).ops) {
      step.ops.push_back({part, op, entry.calls, entry.cost.bytes / tokens, entry.cost.flops / tokens,
                          seconds_of(op, entry, rates, which.head) / tokens});
      step.seconds += step.ops.back().seconds;
    }
  };
  add_part("body", {.first = 0, .count = layers, .head = false});
  add_part("head", {.first = layers, .count = 0, .embedding = false});
  if (const double bytes = epilogue_bytes(model, stage); bytes > 0) {
    step.ops.push_back({"body", "epilogues", 0, bytes, 0, bytes / rates.memory});
    step.seconds += step.ops.back().seconds;
  }
  const auto parameters =
      static_cast<double>(cost_of(model, stage, {.first = 0, .count = layers}).parameters);
  step.optimizer = optimizer_seconds(parameters, rates);
  step.seconds += step.optimizer;
  step.mfu = full_flops(model, parameters) / step.seconds / kDensePeak;
  return step;
}

}  // namespace megalith

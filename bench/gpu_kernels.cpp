// bench_gpu_kernels: the time that a training step of three models would take on one H200 in bf16: for each
// op, that of its memory traffic or of its products, whichever is longer, and a gap for each kernel. The ops,
// their bytes and their products are those of the real Stage on the dry backend; tests hold the row kernels'
// traffic within 5 % of these bytes (tests/ops/cuda/sectors_test.cpp). The rates below are assumed: nothing
// here is measured.
// Prints a JSON object for each op of a model, then one for its step.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "libcore/model/measure.h"

namespace megalith {
namespace {

/// Assumed rates of an H200, whose data sheet has 989 TFLOP/s and 4.8 TB/s.
struct Rates {
  // cuBLASLt reaches 769 to 798 TFLOP/s with 8192^3 (published for this GPU); layers have smaller matrices.
  double products, head_products = 620e12;
  // Goals for our own kernels; cuDNN reaches 484 and 370 with heads of 128 columns at 2048 positions
  // (NVIDIA's cudnn-frontend, benchmark of cuDNN 9.19.1).
  double attention, attention_grad;
  // cuDNN's RMSNorm reaches 3.7 and its gradient 3.8 TB/s there, a copy 4.3.
  double memory = 3.6e12, optimizer_memory = 3.4e12;
  double gap = 1e-6;  // seconds between two kernels
};

struct Model {
  const char* name;
  ModelConfig config;
  int64_t batch;  // sequences of a micro-batch
  Rates rates;
};

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

constexpr double kTokensOfStep = 524288, kDensePeak = 989.4e12;

/// What a part of the model needs for a micro-batch.
StageCost cost_of(const Model& model, const Layers& layers) {
  return measure({.model = model.config,
                  .layers = layers,
                  .split = {.vocabulary = {.padded = true, .logits_bytes = int64_t{1} << 30}},
                  .dtype = DType::kBf16,
                  .micro_batch = model.batch});
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

/// Prints the ops of a part of the model and returns their seconds for a token.
double print_part(const Model& model, const char* part, const Layers& layers) {
  const double tokens = static_cast<double>(model.config.seq_length * model.batch);
  double sum = 0;
  for (const auto& [op, entry] : cost_of(model, layers).ops) {
    const double seconds = seconds_of(op, entry, model.rates, layers.head) / tokens;
    sum += seconds;
    std::printf(
        "{\"model\": \"%s\", \"part\": \"%s\", \"op\": \"%s\", \"calls\": %lld, \"bytes_per_token\": %.0f, "
        "\"flops_per_token\": %.0f, \"ns_per_token\": %.2f}\n",
        model.name, part, op.c_str(), static_cast<long long>(entry.calls), entry.cost.bytes / tokens,
        entry.cost.flops / tokens, 1e9 * seconds);
  }
  return sum;
}

/// The optimizer sets the gradient to 0 and reads it twice (norm, update); it reads and writes master, m and
/// v, and writes the bf16 value: 38 bytes a parameter.
double optimizer_seconds(double parameters, const Rates& rates) {
  constexpr double kBytes = 38;
  return parameters * kBytes / rates.optimizer_memory / kTokensOfStep;
}

/// The operations of a token in products and attention, forward and backward. Attention counts all positions,
/// not only those that a token sees, as published figures do.
double full_flops(const Model& model, double parameters) {
  const ModelConfig& c = model.config;
  const double lookup = c.untied_head ? static_cast<double>(c.vocab_size) * c.hidden : 0;
  return 6 * (parameters - lookup) + 12.0 * c.layers * c.hidden * c.seq_length;
}

void print_step(const Model& model) {
  const int layers = model.config.layers;
  const auto parameters = static_cast<double>(cost_of(model, {.first = 0, .count = layers}).parameters);
  const double body = print_part(model, "body", {.first = 0, .count = layers, .head = false}),
               head = print_part(model, "head", {.first = layers, .count = 0, .embedding = false}),
               optimizer = optimizer_seconds(parameters, model.rates), token = body + head + optimizer;
  std::printf(
      "{\"model\": \"%s\", \"body_ns\": %.1f, \"head_ns\": %.1f, \"optimizer_ns\": %.1f, "
      "\"tokens_per_second\": %.0f, \"mfu_full\": %.3f}\n",
      model.name, 1e9 * body, 1e9 * head, 1e9 * optimizer, 1 / token,
      full_flops(model, parameters) / token / kDensePeak);
}

}  // namespace
}  // namespace megalith

int main() {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  Model models[] = {
      {"gpt2-124m",
       gpt2(12, 768, 12),
       64,
       {.products = 560e12, .attention = 200e12, .attention_grad = 130e12}},
      {"gpt2-1.5b",
       gpt2(48, 1600, 25),
       32,
       {.products = 620e12, .attention = 200e12, .attention_grad = 130e12}},
      {"llama-7b", llama_7b(), 2, {.products = 650e12, .attention = 250e12, .attention_grad = 160e12}}};
  for (Model& model : models) {
    model.config.finish();
    print_step(model);
  }
  return 0;
}

#include "tests/support/tiny_model.h"

#include <numeric>

namespace megalith::test {
namespace {

constexpr size_t kMemory = size_t{16} << 20;  // size of the tape and of the scratch memory: more than enough

ModelConfig common() {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 12;
  config.heads = 4;
  config.kv_channels = 4;  // not hidden / heads, so that tests can tell the two apart
  config.ffn_hidden = 20;
  config.seq_length = 7;
  config.max_positions = 9;
  config.vocab_size = 23;
  config.attention_dropout = config.hidden_dropout = 0;
  config.init_std = 0.3;
  return config;
}

}  // namespace

ModelConfig tiny_gpt2() {
  ModelConfig config = common();
  config.finish();
  return config;
}

ModelConfig tiny_llama() {
  ModelConfig config = common();
  config.position = PositionEmbedding::kRope;
  config.norm = Normalization::kRmsNorm;
  config.swiglu = config.untied_head = config.group_query = true;
  config.query_groups = 2;
  config.linear_bias = false;
  config.finish();
  return config;
}

ModelConfig tiny_gpt_neox() {
  ModelConfig config = common();
  config.position = PositionEmbedding::kRope;
  config.rotary_percent = 0.5;
  config.parallel_residual = config.untied_head = true;
  config.bias_gelu_fusion = false;
  config.finish();
  return config;
}

ModelConfig tiny_falcon() {
  ModelConfig config = common();
  config.position = PositionEmbedding::kRope;
  config.parallel_residual = config.group_query = true;
  config.parallel_norms = config.query_groups = 1;
  config.linear_bias = config.bias_gelu_fusion = false;
  config.finish();
  return config;
}

ModelConfig tiny_qwen3() {
  ModelConfig config = tiny_llama();
  config.qk_layernorm = true;
  config.untied_head = false;
  return config;
}

ModelConfig tiny_olmo2() {
  ModelConfig config = tiny_llama();
  config.qk_layernorm = config.qk_norm_all_heads = true;
  config.norm_placement = NormPlacement::kAfter;
  return config;
}

ModelConfig tiny_granite() {
  ModelConfig config = tiny_llama();
  config.embedding_multiplier = 1.5;
  config.residual_multiplier = 0.6;
  config.attention_multiplier = 0.3;
  config.logits_scaling = 1.25;
  return config;
}

TinyModel::TinyModel(const ModelConfig& config, const RecomputePlan& recompute, DType dtype)
    : stage(config, {.count = config.layers}, {}, table, recompute),
      store(table, stream, {.dtype = dtype}),
      scratch(make_arena(*backend, "scratch", kMemory)),
      tape(make_arena(*backend, "tape", kMemory)) {
  initialize(table, stream, 5);
}

double TinyModel::loss(const Microbatch& microbatch, bool training) {
  tape.clear();
  const View losses = stage.forward(ctx(training), microbatch, {}, tape);
  const double total = sum(losses);
  if (training) stage.backward(ctx(true), microbatch, {}, tape);
  return total * microbatch.grad_scale;
}

Ctx TinyModel::ctx(bool training) {
  return {.compute = stream, .tp = region, .scratch = scratch, .key = {.seed = 77}, .training = training};
}

double TinyModel::sum(ConstView view) const {
  const std::vector<float> host = read(view);
  return std::accumulate(host.begin(), host.end(), 0.0);
}

std::vector<float> TinyModel::read(ConstView view) const {
  std::vector<float> host(static_cast<size_t>(view.elements()));
  Stream copy = stream;
  copy.to_host(host.data(), view);
  copy.synchronize();
  return host;
}

void TinyModel::write(View view, const std::vector<float>& values) {
  stream.from_host(view, values.data());
}

void perturb(TinyModel& model) {
  for (Param& param : model.table.all()) {
    if (param.decay) continue;
    std::vector<float> values = model.read(param.value);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += 0.1f * static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
    model.write(param.value, values);
  }
}

HostBatch::HostBatch(const ModelConfig& config, int64_t rows, int64_t columns)
    : s(rows), b(columns), mask(static_cast<size_t>(s * b), 1.0f), samples(static_cast<size_t>(b)) {
  for (int64_t i = 0; i < s * b; ++i) {
    tokens.push_back(static_cast<int32_t>((i * i + 3 * i) % config.vocab_size));
    labels.push_back(static_cast<int32_t>((i * 5 + 1) % config.vocab_size));
    if (i % 5 == 2) mask[static_cast<size_t>(i)] = 0;
  }
  std::iota(samples.begin(), samples.end(), int64_t{1000});
}

Microbatch HostBatch::view() const {
  const float kept = std::accumulate(mask.begin(), mask.end(), 0.0f);
  return {.tokens = {tokens.data(), DType::kI32, {s, b}},
          .labels = {labels.data(), DType::kI32, {s, b}},
          .loss_mask = {mask.data(), DType::kF32, {s, b}},
          .samples = {samples.data(), DType::kI64, {b}},
          .grad_scale = 1 / kept};
}

}  // namespace megalith::test

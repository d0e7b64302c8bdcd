#pragma once

#include <cstdint>

#include "libcore/train/run/loop.h"

namespace megalith::test {

constexpr int kTinyVocab = 37;

/// A complete configuration that trains in milliseconds: 2 layers of width 16, 2 microbatches of 2 samples of
/// 9 tokens.
inline PretrainConfig tiny_config() {
  PretrainConfig config;
  config.model.layers = 2;
  config.model.hidden = 16;
  config.model.heads = 2;
  config.model.seq_length = 9;
  config.model.vocab_size = kTinyVocab;
  config.model.attention_dropout = config.model.hidden_dropout = 0.1;
  config.train.micro_batch = 2;
  config.train.global_batch = 4;
  config.train.iters = 20;
  config.train.lr = 1e-2;
  config.train.min_lr = 1e-3;
  config.train.decay = LrDecay::kCosine;
  config.train.warmup_iters = 2;
  config.train.eval_interval = 5;
  config.train.eval_iters = 2;
  config.train.log_interval = 5;
  config.finish();
  return config;
}

/// Writes sample `index`: a noisy cycle of ids that a model can learn.
inline void tiny_sample(int64_t index, const SampleView& out) {
  uint64_t noise = static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15ULL + 1;
  auto next = [&](int32_t id) {
    noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int32_t>((3 * id + 1 + static_cast<int32_t>(noise >> 63)) % kTinyVocab);
  };
  int32_t id = static_cast<int32_t>(index * 7 % kTinyVocab);
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    out.tokens[i] = id;
    out.labels[i] = id = next(id);
    out.loss_mask[i] = 1;
  }
}

inline DataSets tiny_data() {
  return {
      .train = {.read = tiny_sample, .size = 1000},
      .valid = {.read = [](int64_t i, const SampleView& out) { tiny_sample(i + 5000, out); }, .size = 100},
      .test = {.read = [](int64_t i, const SampleView& out) { tiny_sample(i + 9000, out); }, .size = 100}};
}

}  // namespace megalith::test

#pragma once

#include "libcore/plan/price/rules.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/search.h"

namespace megalith::test {

inline ModelConfig gpt(int layers, int hidden, int heads, int seq, int64_t vocab) {
  ModelConfig m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.query_groups = heads;
  m.ffn_hidden = 4 * hidden;
  m.kv_channels = hidden / heads;
  m.seq_length = m.max_positions = seq;
  m.vocab_size = vocab;
  return m;
}

inline ModelConfig llama(int layers, int hidden, int heads, int groups, int ffn, int64_t vocab) {
  ModelConfig m = gpt(layers, hidden, heads, 4096, vocab);
  m.group_query = groups != heads;
  m.query_groups = groups;
  m.ffn_hidden = ffn;
  m.swiglu = m.untied_head = true;
  m.linear_bias = false;
  m.norm = Normalization::kRmsNorm;
  m.position = PositionEmbedding::kRope;
  m.hidden_dropout = m.attention_dropout = 0;
  return m;
}

/// A small GPT on one processor without accelerators, with steps of `micro_batch` samples.
inline PlanProblem on_this_processor(int64_t vocab, int micro_batch) {
  PlanProblem p;
  p.model = gpt(4, 256, 4, 256, vocab);
  p.machine = {Accelerator{.name = "a processor",
                           .half_flops = 1e12,
                           .float_flops = 1e12,
                           .memory = 64e9,
                           .memory_bandwidth = 2e10,
                           .link_bandwidth = 1e10,
                           .network_bandwidth = 1e10},
               1, 1};
  p.precision = Precision::kFloat32;
  p.software = trainer_software();
  p.global_batch = micro_batch;
  return p;
}

/// GPT-3 with 22 billion parameters (Korthikanti et al. 2022, table 3) on A100 machines of eight.
inline PlanProblem gpt_22b(int world) {
  PlanProblem p;
  p.model = gpt(48, 6144, 64, 2048, 50257);
  p.machine = {find_accelerator("A100-SXM-80GB"), world, 8};
  p.max_global_batch = 16;
  return p;
}

/// Mixtral-8x7B's shape (arXiv 2401.04088, table 1) on H100 machines of eight.
inline PlanProblem mixtral(int world) {
  PlanProblem p;
  p.model = llama(32, 4096, 32, 8, 14336, 32000);
  p.model.experts = 8;
  p.model.router_topk = 2;
  p.model.finish();
  p.machine = {find_accelerator("H100"), world, 8};
  p.global_batch = 256;
  return p;
}

}  // namespace megalith::test

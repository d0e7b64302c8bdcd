#include "libcore/plan/memory_bill.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

double query_width(const ModelConfig& m) {
  return static_cast<double>(m.heads) * m.kv_channels;
}
double key_width(const ModelConfig& m) {
  return static_cast<double>(m.kv_heads()) * m.kv_channels;
}
double gates(const ModelConfig& m) {
  return m.swiglu ? 2 : 1;
}
double norm_width(const ModelConfig& m) {
  return (m.norm == Normalization::kLayerNorm ? 2.0 : 1.0) * m.hidden;
}

/// Key and value widths on one rank: with fewer groups than ranks a group's projections are repeated.
double local_key_width(const ModelConfig& m, int tensor) {
  return std::max(key_width(m) / tensor, static_cast<double>(m.kv_channels));
}

double element_bytes(const PlanProblem& p) {
  return p.half ? 2 : 4;
}

/// Tokens of one microbatch on one device before any cut along the sequence by the tensor group.
double tokens(const PlanProblem& p, const Candidate& c) {
  return static_cast<double>(p.model.seq_length) * c.micro_batch / c.context;
}

/// The part of a row-wise tensor that a device keeps.
double sequence_share(const Candidate& c) {
  return c.sequence ? 1.0 / c.tensor : 1.0;
}

/// Microbatches times chunks whose activations stage `stage` holds at its fullest (1F1B, and Megatron's
/// interleaving).
double chunks_in_flight(const Candidate& c, int stage) {
  const double behind = c.pipeline - stage - 1;
  const double total = static_cast<double>(c.microbatches) * c.chunks;
  const double warmup = c.chunks == 1 ? behind : 2 * behind + (c.chunks - 1.0) * c.pipeline;
  return std::min(total, warmup + 1);
}

void add_state(const PlanProblem& p, const Candidate& c, double parameters, MemoryBill& bill) {
  const double shard = c.distributed_optimizer ? 1.0 / (static_cast<double>(c.data) * c.context) : 1.0;
  bill.parameters = parameters * element_bytes(p);
  bill.gradients = parameters * 4;
  bill.optimizer = parameters * (p.half ? 12 : 8) * shard;  // fp32 master (16-bit models), two moments
}

double stage_parameters(const PlanProblem& p, const Candidate& c, int stage) {
  const ParameterCount count = count_parameters(p.model, c.tensor);
  double sum = count.block * p.model.layers / c.pipeline;
  if (stage == 0) sum += count.embedding;
  if (stage == c.pipeline - 1) sum += count.head + (c.pipeline > 1 ? count.head_copy : 0);
  return sum;
}

double stage_activations(const PlanProblem& p, const Candidate& c, int stage) {
  const double n = tokens(p, c), e = element_bytes(p);
  const double layers_of_chunk = static_cast<double>(p.model.layers) / (c.pipeline * c.chunks);
  double kept = block_activations(p, c) * layers_of_chunk * chunks_in_flight(c, stage);
  if (c.recompute == Recompute::kFull) {  // a layer is filled again while its backward pass runs
    Candidate whole = c;
    whole.recompute = Recompute::kNone;
    kept += block_activations(p, whole);
  }
  const double flight = chunks_in_flight(c, stage) / c.chunks;
  if (stage == 0)
    kept += flight * n * (8 + (p.model.hidden_dropout > 0 ? p.model.hidden * sequence_share(c) : 0));
  if (stage == c.pipeline - 1)
    kept += 2 * e * n * p.model.hidden * sequence_share(c);  // the final norm's input and output
  return kept;
}

double transient_bytes(const PlanProblem& p, const Candidate& c) {
  const double n = tokens(p, c), e = element_bytes(p);
  const double gathered = c.sequence ? 2 * e * n * p.model.hidden : 0;
  const double messages = c.pipeline > 1 ? 4 * e * n * p.model.hidden * sequence_share(c) : 0;
  const double workspace = p.machine.device.multiprocessors > 0 ? 64 * kMiB : 16 * kMiB;
  return gathered + messages + workspace;
}

/// Driver and kernels, and about 0.3 GB of buffers for each kind of group with more than one rank.
double context_bytes(const PlanProblem& p, const Candidate& c) {
  if (p.machine.device.multiprocessors == 0) return 64 * kMiB;
  const int groups = (c.tensor > 1) + (c.pipeline > 1) + (c.data > 1) + (c.context > 1);
  return 0.6e9 + 0.35e9 * groups;
}

}  // namespace

ParameterCount count_parameters(const ModelConfig& m, int tensor) {
  const double h = m.hidden, f = m.ffn_hidden, t = tensor;
  const double qkv = query_width(m) / t + 2 * local_key_width(m, tensor);
  ParameterCount count;
  count.block = h * qkv + query_width(m) / t * h + (gates(m) + 1) * h * f / t + 2 * norm_width(m);
  if (m.has_qkv_bias()) count.block += qkv;
  if (m.linear_bias) count.block += h + gates(m) * f / t + h;
  const double table = static_cast<double>(m.padded_vocab(tensor)) * h / t;
  count.embedding = table;
  if (m.position == PositionEmbedding::kLearned) count.embedding += static_cast<double>(m.max_positions) * h;
  count.head = norm_width(m) + (m.untied_head ? table : 0);
  count.head_copy = m.untied_head ? 0 : table;
  return count;
}

double total_parameters(const ModelConfig& m) {
  ModelConfig unpadded = m;
  unpadded.vocab_divisor = 1;
  const ParameterCount count = count_parameters(unpadded, 1);
  return count.block * m.layers + count.embedding + count.head;
}

double block_activations(const PlanProblem& p, const Candidate& c) {
  const ModelConfig& m = p.model;
  const double n = tokens(p, c), e = element_bytes(p), h = m.hidden, t = c.tensor, share = sequence_share(c);
  if (c.recompute == Recompute::kFull) return n * e * h * share;
  const double rows =
      4 * e * h * share + (m.hidden_dropout > 0 ? 2 * h * share : 0);  // norms' inputs and outputs, two masks
  const double attention =
      e * (query_width(m) / t + 2 * local_key_width(m, c.tensor)) + e * query_width(m) / t;
  const double log_sum = 4.0 * m.heads / t;
  const double mlp = e * (gates(m) + 1) * m.ffn_hidden / t;
  return n * (rows + attention + log_sum + mlp);  // the attention scores are never kept (flash form)
}

MemoryBill memory_bill(const PlanProblem& p, const Candidate& c, int stage) {
  MemoryBill bill;
  add_state(p, c, stage_parameters(p, c, stage), bill);
  bill.activations = stage_activations(p, c, stage);
  if (stage == c.pipeline - 1)
    bill.logits = tokens(p, c) * static_cast<double>(p.model.padded_vocab(c.tensor)) / c.tensor *
                  (4 + (p.half ? 2 : 0));
  bill.transient = transient_bytes(p, c);
  bill.context = context_bytes(p, c);
  bill.fragmentation = p.machine.device.multiprocessors > 0 ? 0.04 * bill.allocated() : 0;
  return bill;
}

WorstStage worst_stage(const PlanProblem& p, const Candidate& c) {
  WorstStage worst{0, memory_bill(p, c, 0)};
  for (int stage : {1, c.pipeline - 1}) {  // between them each stage holds less than the one before
    if (stage <= 0 || stage >= c.pipeline) continue;
    const MemoryBill bill = memory_bill(p, c, stage);
    if (bill.device() > worst.bill.device()) worst = {stage, bill};
  }
  return worst;
}

}  // namespace megalith

#include "libcore/plan/candidate.h"

#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"

namespace megalith {
namespace {

using Rule = std::optional<Rejection> (*)(const PlanProblem&, const Candidate&);

template <class... Parts>
std::optional<Rejection> reject_if(bool broken, const char* rule, const Parts&... parts) {
  if (!broken) return std::nullopt;
  return Rejection{rule, concat(parts...)};
}

// Each rule sees a candidate whose derived numbers are filled. Ids and sources: docs/planner.md.
std::optional<Rejection> hidden_by_heads(const PlanProblem& p, const Candidate&) {
  return reject_if(
      p.model.hidden % p.model.heads != 0 && p.model.kv_channels * p.model.heads == p.model.hidden, "H1",
      "hidden size ", p.model.hidden, " is not a multiple of ", p.model.heads, " heads",
      nearest_multiples(p.model.hidden, p.model.heads));
}
std::optional<Rejection> heads_by_tensor(const PlanProblem& p, const Candidate& c) {
  return reject_if(p.model.heads % c.tensor != 0, "H2", p.model.heads, " heads are not a multiple of tensor ",
                   c.tensor, nearest_multiples(p.model.heads, c.tensor));
}
std::optional<Rejection> groups_by_tensor(const PlanProblem& p, const Candidate& c) {
  const int groups = p.model.kv_heads();
  return reject_if(groups % c.tensor != 0 && c.tensor % groups != 0, "H3", groups,
                   " query groups are neither multiple nor divisor of tensor ", c.tensor);
}
std::optional<Rejection> ffn_by_tensor(const PlanProblem& p, const Candidate& c) {
  return reject_if(p.model.ffn_hidden % c.tensor != 0, "H4", "feed-forward width ", p.model.ffn_hidden,
                   " is not a multiple of tensor ", c.tensor,
                   nearest_multiples(p.model.ffn_hidden, c.tensor));
}
std::optional<Rejection> layers_by_pipeline(const PlanProblem& p, const Candidate& c) {
  if (!p.stage_layers.empty()) {
    const int sum = std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), 0);
    return reject_if(static_cast<int>(p.stage_layers.size()) != c.pipeline || sum != p.model.layers, "L1",
                     "the table of ", p.stage_layers.size(), " stages with ", sum,
                     " layers is not one of pipeline ", c.pipeline, " and ", p.model.layers, " layers");
  }
  const int between = p.model.layers - c.first_layers - c.last_layers;
  const int others = c.pipeline - (c.first_layers > 0) - (c.last_layers > 0);
  return reject_if(between < others || (others <= 0 && between != 0), "L1", p.model.layers, " layers with ",
                   c.first_layers, " on the first and ", c.last_layers,
                   " on the last stage (0: as the others) leave ", between, " for ", others, " stages");
}
std::optional<Rejection> layers_by_chunks(const PlanProblem& p, const Candidate& c) {
  if (c.chunks == 1) return std::nullopt;
  bool divides = c.pipeline > 1;
  for (int stage : {0, 1, c.pipeline - 2, c.pipeline - 1})
    if (stage >= 0 && stage < c.pipeline) divides = divides && stage_layers(p, c, stage) >= c.chunks;
  const int counted =
      p.model.layers + (c.first_layers > 0) + (c.last_layers > 0);  // L2: ends count a layer more
  divides = divides && counted % (c.pipeline * c.chunks) == 0;
  return reject_if(!divides, "V1", p.model.layers, " layers cannot be interleaved over pipeline ", c.pipeline,
                   " in ", c.chunks, " chunks");
}
std::optional<Rejection> microbatches_by_groups(const PlanProblem&, const Candidate& c) {
  const int64_t rest = c.microbatches % c.pipeline;  // the group is Megatron's default: pipeline microbatches
  return reject_if(c.chunks > 1 && (c.microbatches < c.pipeline || rest != 0), "V2", c.microbatches,
                   " microbatches are not a multiple of pipeline ", c.pipeline, ", which interleaving needs",
                   nearest_multiples(c.microbatches, c.pipeline));
}
std::optional<Rejection> sequence_by_tensor(const PlanProblem& p, const Candidate& c) {
  return reject_if(c.sequence && (c.tensor == 1 || p.model.seq_length % c.tensor != 0), "S1",
                   "sequence parallelism needs tensor > 1 that divides the sequence of ", p.model.seq_length);
}
std::optional<Rejection> sequence_by_context(const PlanProblem& p, const Candidate& c) {
  const int parts = 2 * c.context * (c.sequence ? c.tensor : 1);
  return reject_if(c.context > 1 && p.model.seq_length % parts != 0, "C1", "sequence ", p.model.seq_length,
                   " is not a multiple of ", parts, nearest_multiples(p.model.seq_length, parts));
}

/// "; nearest that work: 2, 4": the divisors of `value` around `wanted`.
std::string nearest_divisors(int value, int wanted) {
  int below = 0, above = 0;
  for (int d = 1; d <= value; ++d) {
    if (value % d != 0) continue;
    if (d < wanted) below = d;
    if (d > wanted && above == 0) above = d;
  }
  return concat("; nearest that work: ", below, below > 0 && above > 0 ? ", " : "",
                above > 0 ? std::to_string(above) : "");
}
std::optional<Rejection> experts_by_ranks(const PlanProblem& p, const Candidate& c) {
  if (!p.model.has_experts())
    return reject_if(c.expert * c.expert_tensor > 1, "W2", "expert ", c.expert, " and expert-tensor ",
                     c.expert_tensor, " of a model without experts; leave both at 1");
  const int experts = p.model.expert_count(), ranks = c.tensor * c.context * c.data;
  if (auto rejection =
          reject_if(experts % c.expert != 0, "W2", experts, " experts are not a multiple of expert ",
                    c.expert, nearest_divisors(experts, c.expert)))
    return rejection;
  return reject_if(ranks % (c.expert * c.expert_tensor) != 0, "W2", p.machine.world,
                   " devices are no multiple of expert-tensor ", c.expert_tensor, " * expert ", c.expert,
                   " * pipeline ", c.pipeline, " = ", c.expert_tensor * c.expert * c.pipeline,
                   nearest_divisors(std::gcd(experts, ranks / std::gcd(ranks, c.expert_tensor)), c.expert),
                   " as expert");
}
std::optional<Rejection> expert_ffn_by_tensor(const PlanProblem& p, const Candidate& c) {
  if (!p.model.has_experts()) return std::nullopt;
  if (auto rejection = reject_if(p.model.expert_ffn % c.expert_tensor != 0, "H4", "an expert's width ",
                                 p.model.expert_ffn, " is not a multiple of expert-tensor ", c.expert_tensor,
                                 nearest_multiples(p.model.expert_ffn, c.expert_tensor)))
    return rejection;
  return reject_if(p.model.shared_ffn % c.tensor != 0, "H4", "the shared experts' width ", p.model.shared_ffn,
                   " is not a multiple of tensor ", c.tensor,
                   nearest_multiples(p.model.shared_ffn, c.tensor));
}
std::optional<Rejection> experts_by_sequence(const PlanProblem& p, const Candidate& c) {
  return reject_if(p.model.has_experts() && c.tensor > 1 && !c.sequence, "S2", "experts with tensor ",
                   c.tensor, " need sequence parallelism; give --sequence-parallel, or tensor 1");
}

constexpr Rule kRules[] = {hidden_by_heads,        heads_by_tensor,      groups_by_tensor,
                           ffn_by_tensor,          layers_by_pipeline,   layers_by_chunks,
                           microbatches_by_groups, sequence_by_tensor,   sequence_by_context,
                           experts_by_ranks,       expert_ffn_by_tensor, experts_by_sequence};

/// B1: the global batch is a multiple of what one microbatch over all data ranks takes.
std::optional<Rejection> fill_batch(const PlanProblem& p, Candidate& c) {
  const int64_t slice = int64_t{c.micro_batch} * c.data;
  c.global_batch = p.global_batch > 0 ? p.global_batch : p.max_global_batch / slice * slice;
  c.microbatches = c.global_batch / slice;
  const int64_t asked = p.global_batch > 0 ? p.global_batch : p.max_global_batch;
  return reject_if(c.microbatches == 0 || c.global_batch % slice != 0, "B1", "global batch ", asked,
                   " is no multiple of micro-batch ", c.micro_batch, " * data ", c.data,
                   nearest_multiples(asked, slice));
}

}  // namespace

int stage_layers(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.stage_layers.empty()) return p.stage_layers[static_cast<size_t>(stage)];
  if (stage == 0 && c.first_layers > 0) return c.first_layers;
  if (stage == c.pipeline - 1 && c.last_layers > 0) return c.last_layers;
  const int others = c.pipeline - (c.first_layers > 0) - (c.last_layers > 0);
  const int between = p.model.layers - c.first_layers - c.last_layers;
  const int each = between / others, more = between % others;
  if (more == 0) return each;
  // The stages before the last of those that share: they hold few microbatches, and the last may have the
  // head.
  const int place = stage - (c.first_layers > 0), end = others - (c.last_layers > 0 ? 0 : 1);
  return each + (place < end && place >= end - more ? 1 : 0);
}

int stage_plain_layers(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.model.has_experts()) return 0;
  if (c.chunks == 1) {
    int begin = 0;
    for (int before = 0; before < stage; ++before) begin += stage_layers(p, c, before);
    return p.model.plain_layers(begin, begin + stage_layers(p, c, stage));
  }
  // L2: the first chunk of all may be a layer short, where the embedding counts as one.
  const int counted = p.model.layers + (c.first_layers > 0) + (c.last_layers > 0);
  const int parts = c.pipeline * c.chunks, each = (counted + parts - 1) / parts;
  const int embedding = c.first_layers > 0 ? 1 : 0;
  int plain = 0;
  for (int chunk = 0; chunk < c.chunks; ++chunk) {
    const int begin = (chunk * c.pipeline + stage) * each - embedding;
    const int end = std::min(begin + each, p.model.layers);
    if (begin < end) plain += p.model.plain_layers(std::max(begin, 0), end);
  }
  return plain;
}

std::optional<Rejection> complete(const PlanProblem& p, Candidate& c) {
  const int ranks = c.tensor * c.pipeline * c.context;
  if (p.machine.world % ranks != 0)
    return Rejection{
        "W1", concat(p.machine.world, " devices are no multiple of tensor * pipeline * context = ", ranks)};
  c.data = p.machine.world / ranks;
  if (auto rejection = fill_batch(p, c)) return rejection;
  for (Rule rule : kRules)
    if (auto rejection = rule(p, c)) return rejection;
  return std::nullopt;
}

}  // namespace megalith

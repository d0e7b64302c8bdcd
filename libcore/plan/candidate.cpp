#include "libcore/plan/candidate.h"

#include <algorithm>

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
      "hidden size ", p.model.hidden, " is not a multiple of ", p.model.heads, " heads");
}
std::optional<Rejection> heads_by_tensor(const PlanProblem& p, const Candidate& c) {
  return reject_if(p.model.heads % c.tensor != 0, "H2", p.model.heads, " heads are not a multiple of tensor ",
                   c.tensor);
}
std::optional<Rejection> groups_by_tensor(const PlanProblem& p, const Candidate& c) {
  const int groups = p.model.kv_heads();
  return reject_if(groups % c.tensor != 0 && c.tensor % groups != 0, "H3", groups,
                   " query groups are neither multiple nor divisor of tensor ", c.tensor);
}
std::optional<Rejection> ffn_by_tensor(const PlanProblem& p, const Candidate& c) {
  return reject_if(p.model.ffn_hidden % c.tensor != 0, "H4", "feed-forward width ", p.model.ffn_hidden,
                   " is not a multiple of tensor ", c.tensor);
}
std::optional<Rejection> layers_by_pipeline(const PlanProblem& p, const Candidate& c) {
  return reject_if(p.model.layers % c.pipeline != 0, "L1", p.model.layers,
                   " layers are not a multiple of pipeline ", c.pipeline);
}
std::optional<Rejection> layers_by_chunks(const PlanProblem& p, const Candidate& c) {
  return reject_if(c.chunks > 1 && (c.pipeline == 1 || p.model.layers % (c.pipeline * c.chunks) != 0), "V1",
                   p.model.layers, " layers cannot be interleaved over pipeline ", c.pipeline, " in ",
                   c.chunks, " chunks");
}
std::optional<Rejection> microbatches_by_groups(const PlanProblem&, const Candidate& c) {
  const int64_t rest = c.microbatches % c.pipeline;  // the group is Megatron's default: pipeline microbatches
  return reject_if(c.chunks > 1 && (c.microbatches < c.pipeline || rest != 0), "V2", c.microbatches,
                   " microbatches are not a multiple of pipeline ", c.pipeline, ", which interleaving needs");
}
std::optional<Rejection> sequence_by_tensor(const PlanProblem& p, const Candidate& c) {
  return reject_if(c.sequence && (c.tensor == 1 || p.model.seq_length % c.tensor != 0), "S1",
                   "sequence parallelism needs tensor > 1 that divides the sequence of ", p.model.seq_length);
}
std::optional<Rejection> sequence_by_context(const PlanProblem& p, const Candidate& c) {
  const int parts = 2 * c.context * (c.sequence ? c.tensor : 1);
  return reject_if(c.context > 1 && p.model.seq_length % parts != 0, "C1", "sequence ", p.model.seq_length,
                   " is not a multiple of ", parts);
}

constexpr Rule kRules[] = {hidden_by_heads,        heads_by_tensor,    groups_by_tensor,
                           ffn_by_tensor,          layers_by_pipeline, layers_by_chunks,
                           microbatches_by_groups, sequence_by_tensor, sequence_by_context};

/// B1: the global batch is a multiple of what one microbatch over all data ranks takes.
std::optional<Rejection> fill_batch(const PlanProblem& p, Candidate& c) {
  const int64_t slice = int64_t{c.micro_batch} * c.data;
  c.global_batch = p.global_batch > 0 ? p.global_batch : p.max_global_batch / slice * slice;
  c.microbatches = c.global_batch / slice;
  const int64_t asked = p.global_batch > 0 ? p.global_batch : p.max_global_batch;
  return reject_if(c.microbatches == 0 || c.global_batch % slice != 0, "B1", "global batch ", asked,
                   " is no multiple of micro-batch ", c.micro_batch, " * data ", c.data);
}

}  // namespace

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

#include "libcore/plan/price/rules.h"

#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/plan/price/code_base.h"

namespace megalith {
namespace {

/// A rule with its id. broken() tells whether a candidate breaks the rule. It then also fills `reason`,
/// unless that is nullptr: a search checks thousands of candidates but prints one reason.
struct Rule {
  const char* id;
  bool (*broken)(const PlanProblem&, const Candidate&, std::string* reason);
};

template <class Words>
bool broken_if(bool broken, std::string* reason, const Words& words) {
  if (broken && reason) *reason = words();
  return broken;
}

// The rules. The derived numbers of the candidate are already set. Ids and sources: docs/planner.md.
bool hidden_by_heads(const PlanProblem& p, const Candidate&, std::string* reason) {
  const ModelShape& m = p.model;
  return broken_if(m.hidden % m.heads != 0 && m.kv_channels * m.heads == m.hidden, reason, [&] {
    return concat("hidden size ", m.hidden, " is not a multiple of ", m.heads, " heads",
                  nearest_multiples(m.hidden, m.heads));
  });
}
bool heads_by_tensor(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(p.model.heads % c.tensor != 0, reason, [&] {
    return concat(p.model.heads, " heads are not a multiple of tensor ", c.tensor,
                  nearest_multiples(p.model.heads, c.tensor));
  });
}
bool groups_by_tensor(const PlanProblem& p, const Candidate& c, std::string* reason) {
  const int groups = p.model.kv_heads();
  return broken_if(groups % c.tensor != 0 && c.tensor % groups != 0, reason, [&] {
    return concat(groups, " query groups are neither multiple nor divisor of tensor ", c.tensor);
  });
}
bool ffn_by_tensor(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(p.model.ffn_hidden % c.tensor != 0, reason, [&] {
    return concat("feed-forward width ", p.model.ffn_hidden, " is not a multiple of tensor ", c.tensor,
                  nearest_multiples(p.model.ffn_hidden, c.tensor));
  });
}
bool layers_by_pipeline(const PlanProblem& p, const Candidate& c, std::string* reason) {
  if (!p.stage_layers.empty()) {
    const int64_t sum = std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), int64_t{0});
    return broken_if(
        static_cast<int>(p.stage_layers.size()) != c.pipeline || sum != p.model.layers, reason, [&] {
          return concat("the table of ", p.stage_layers.size(), " stages with ", sum,
                        " layers is not one of pipeline ", c.pipeline, " and ", p.model.layers, " layers");
        });
  }
  const int between = p.model.layers - c.first_layers - c.last_layers;
  const int others = c.pipeline - (c.first_layers > 0) - (c.last_layers > 0);
  return broken_if(between < others || (others <= 0 && between != 0), reason, [&] {
    return concat(p.model.layers, " layers with ", c.first_layers, " on the first and ", c.last_layers,
                  " on the last stage (0: as the others) leave ", between, " for ", others, " stages");
  });
}
/// The divisors of `value` next to `wanted` on each side, as "; nearest that work: 2, 4"; empty if there are
/// none.
std::string nearest_divisors(int value, int wanted) {
  int below = 0, above = 0;
  for (int d = 1; d <= value; ++d) {
    if (value % d != 0) continue;
    if (d < wanted) below = d;
    if (d > wanted && above == 0) above = d;
  }
  if (below == 0 && above == 0) return "";
  return concat("; nearest that work: ", below > 0 ? std::to_string(below) : "",
                below > 0 && above > 0 ? ", " : "", above > 0 ? std::to_string(above) : "");
}
/// The layers of a stage, with an end that counts as one (L2): Megatron's first and last chunk may hold that
/// end alone (get_num_layers_to_build() in transformer_block.py).
int counted_stage_layers(const PlanProblem& p, const Candidate& c, int stage) {
  const bool embedding = stage == 0 && c.counts_embedding, head = stage == c.pipeline - 1 && c.counts_head;
  return stage_layers(p, c, stage) + embedding + head;
}
bool layers_by_chunks(const PlanProblem& p, const Candidate& c, std::string* reason) {
  if (c.chunks == 1) return false;
  const bool counts = c.counts_embedding || c.counts_head;
  bool divides = c.pipeline > 1 && (counts || (c.first_layers == 0 && c.last_layers == 0));
  for (int stage : {0, 1, c.pipeline - 2, c.pipeline - 1})
    if (stage >= 0 && stage < c.pipeline) divides = divides && counted_stage_layers(p, c, stage) >= c.chunks;
  divides = divides && counted_layers(p, c) % (c.pipeline * c.chunks) == 0;
  return broken_if(!divides, reason, [&] {
    const int layers = counted_layers(p, c), each = layers / c.pipeline;
    const std::string near =
        c.pipeline > 1 && layers % c.pipeline == 0 ? nearest_divisors(each, c.chunks) : "";
    return concat(p.model.layers, " layers cannot be interleaved over pipeline ", c.pipeline, " in ",
                  c.chunks, " chunks", near.empty() ? "; 1 chunk works" : near + " chunks");
  });
}
bool microbatches_by_groups(const PlanProblem&, const Candidate& c, std::string* reason) {
  const int64_t rest = c.microbatches % c.pipeline;  // Megatron's default group has `pipeline` microbatches
  return broken_if(c.chunks > 1 && (c.microbatches < c.pipeline || rest != 0), reason, [&] {
    return concat(c.microbatches, " microbatches are not a multiple of pipeline ", c.pipeline,
                  ", which interleaving needs", nearest_multiples(c.microbatches, c.pipeline));
  });
}
bool sequence_by_tensor(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(c.sequence && (c.tensor == 1 || p.model.seq_length % c.tensor != 0), reason, [&] {
    return concat("sequence parallelism needs tensor > 1 that divides the sequence of ", p.model.seq_length);
  });
}
bool sequence_by_context(const PlanProblem& p, const Candidate& c, std::string* reason) {
  // Spans of each rank: one from each end, so that all ranks have equally many pairs of tokens.
  constexpr int kSpans = 2;
  const int parts = kSpans * c.context * (c.sequence ? c.tensor : 1);
  return broken_if(c.context > 1 && p.model.seq_length % parts != 0, reason, [&] {
    return concat("sequence ", p.model.seq_length, " is not a multiple of ", parts,
                  nearest_multiples(p.model.seq_length, parts));
  });
}

bool context_by_attention(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(c.context > 1 && keeps_scores(p.software.attention), reason,
                   [&] { return concat("context ", c.context, " needs attention that keeps no scores"); });
}

/// Advice when the number of expert ranks does not divide the ranks of a stage.
std::string nearest_expert_ranks(int experts, int ranks, const Candidate& c) {
  if (ranks % c.expert_tensor != 0)
    return concat("; expert-tensor must divide the ", ranks, " ranks of a pipeline stage");
  return nearest_divisors(std::gcd(experts, ranks / c.expert_tensor), c.expert) + " as expert";
}
bool experts_by_ranks(const PlanProblem& p, const Candidate& c, std::string* reason) {
  if (!p.model.has_experts())
    return broken_if(c.expert * c.expert_tensor > 1, reason, [&] {
      return concat("expert ", c.expert, " and expert-tensor ", c.expert_tensor,
                    " of a model without experts; leave both at 1");
    });
  const int experts = p.model.expert_count(), ranks = c.tensor * c.context * c.data;
  if (broken_if(experts % c.expert != 0, reason, [&] {
        return concat(experts, " experts are not a multiple of expert ", c.expert,
                      nearest_divisors(experts, c.expert));
      }))
    return true;
  return broken_if(ranks % (c.expert * c.expert_tensor) != 0, reason, [&] {
    return concat(p.machine.world, " devices are not a multiple of expert-tensor ", c.expert_tensor,
                  " * expert ", c.expert, " * pipeline ", c.pipeline, " = ",
                  c.expert_tensor * c.expert * c.pipeline, nearest_expert_ranks(experts, ranks, c));
  });
}
bool expert_ffn_by_tensor(const PlanProblem& p, const Candidate& c, std::string* reason) {
  if (!p.model.has_experts()) return false;
  if (broken_if(p.model.expert_ffn % c.expert_tensor != 0, reason, [&] {
        return concat("an expert's width ", p.model.expert_ffn, " is not a multiple of expert-tensor ",
                      c.expert_tensor, nearest_multiples(p.model.expert_ffn, c.expert_tensor));
      }))
    return true;
  return broken_if(p.model.shared_ffn % c.tensor != 0, reason, [&] {
    return concat("the shared experts' width ", p.model.shared_ffn, " is not a multiple of tensor ", c.tensor,
                  nearest_multiples(p.model.shared_ffn, c.tensor));
  });
}
bool experts_by_sequence(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(p.model.has_experts() && c.tensor > 1 && !c.sequence, reason, [&] {
    return concat("experts with tensor ", c.tensor,
                  " need sequence parallelism; give --sequence-parallel, or tensor 1");
  });
}

bool deepep_has_ranks(const PlanProblem& p, const Candidate& c, std::string* reason) {
  const bool flex = p.model.has_experts() && p.model.dispatcher == Dispatcher::kFlex;
  return broken_if(flex && c.expert * c.expert_tensor == 1, reason, [] {
    return "--moe-token-dispatcher-type flex needs expert * expert-tensor above 1; give alltoall for 1";
  });
}
bool exchange_beside_work(const PlanProblem& p, const Candidate& c, std::string* reason) {
  if (!p.software.overlap_exchange || !p.model.has_experts()) return false;
  const bool dualpipe = p.software.schedule == Schedule::kDualPipe;
  const auto needs = [&](bool broken, const char* what) {
    return broken_if(broken, reason, [&] {
      return concat(dualpipe ? "--software-features dualpipe" : "--overlap-moe-expert-parallel-comm",
                    " needs ", what);
    });
  };
  return needs(p.model.dispatcher == Dispatcher::kAllGather,
               "--moe-token-dispatcher-type alltoall or flex") ||
         needs(!p.half(), "--bf16 or --fp16") || needs(p.model.predicted > 1, "--mtp-num-layers 1 at most") ||
         needs(p.model.shared_overlap, "--moe-shared-expert-overlap left out") ||
         needs(c.recompute == Recomputed::kFull, "no layers recomputed whole") ||
         needs(c.expert == 1, "expert above 1") ||
         needs(c.pipeline > 1 && c.chunks == 1 && !dualpipe, "pipeline 1 or an interleaved one");
}
bool bias_by_scores(const PlanProblem& p, const Candidate&, std::string* reason) {
  const ModelShape& m = p.model;
  return broken_if(m.expert_bias && m.score_function == "softmax", reason, [] {
    return "--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid or sqrtsoftplus";
  });
}
bool biases_by_expert_tensor(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(p.model.has_experts() && p.model.linear_bias && c.expert_tensor > 1, reason, [&] {
    return concat("experts with biases need expert-tensor 1, not ", c.expert_tensor,
                  "; give --disable-bias-linear, or 1");
  });
}
bool capacity_by_router(const PlanProblem& p, const Candidate&, std::string* reason) {
  const ModelShape& m = p.model;
  if (!m.capacity) return false;
  const auto needs = [&](bool broken, const char* what) {
    return broken_if(broken, reason, [&] { return concat("--moe-expert-capacity-factor needs ", what); });
  };
  const auto other = [](const std::string& type) { return type != "none" && !type.ends_with("aux_loss"); };
  return needs(m.dispatcher != Dispatcher::kAllToAll, "--moe-token-dispatcher-type alltoall") ||
         needs(std::any_of(m.balance.begin(), m.balance.end(), other),
               "--moe-router-load-balancing-type aux_loss, seq_aux_loss, global_aux_loss or none");
}
bool shared_by_dispatcher(const PlanProblem& p, const Candidate&, std::string* reason) {
  return broken_if(p.model.shared_overlap && p.model.dispatcher == Dispatcher::kAllGather, reason, [] {
    return "--moe-shared-expert-overlap needs --moe-token-dispatcher-type alltoall or flex";
  });
}

bool dualpipe_by_stages(const PlanProblem& p, const Candidate& c, std::string* reason) {
  if (p.software.schedule != Schedule::kDualPipe || c.pipeline == 1) return false;
  const bool even = c.pipeline % 2 == 0 && c.microbatches % 2 == 0;
  return broken_if(!even || c.chunks > 1 || c.microbatches < int64_t{2} * c.pipeline, reason, [&] {
    return concat(
        "--software-features dualpipe needs an even pipeline without chunks, and an even number of "
        "microbatches, twice as many as stages at least; these are ",
        c.pipeline, " stages and ", c.microbatches, " microbatches");
  });
}

bool graphs_by_recomputation(const PlanProblem& p, const Candidate& c, std::string* reason) {
  return broken_if(c.recompute != Recomputed::kNone && graphs_exclude_recomputation(p), reason, [] {
    return "--software-features cuda_graphs needs nothing recomputed; leave out one of them";
  });
}

constexpr Rule kRules[] = {
    {"H1", hidden_by_heads},        {"H2", heads_by_tensor},         {"H3", groups_by_tensor},
    {"H4", ffn_by_tensor},          {"L1", layers_by_pipeline},      {"V1", layers_by_chunks},
    {"V2", microbatches_by_groups}, {"S1", sequence_by_tensor},      {"C1", sequence_by_context},
    {"C2", context_by_attention},   {"W2", experts_by_ranks},        {"H4", expert_ffn_by_tensor},
    {"S2", experts_by_sequence},    {"E1", deepep_has_ranks},        {"E2", exchange_beside_work},
    {"E3", bias_by_scores},         {"E4", biases_by_expert_tensor}, {"E5", capacity_by_router},
    {"E6", shared_by_dispatcher},   {"G1", graphs_by_recomputation}, {"D1", dualpipe_by_stages}};

/// W1: the number of devices is a multiple of what one copy of the model needs.
bool world_by_ranks(const PlanProblem& p, Candidate& c, std::string* reason) {
  const int ranks = c.tensor * c.pipeline * c.context;
  c.data = p.machine.world / ranks;
  return broken_if(p.machine.world % ranks != 0, reason, [&] {
    return concat(p.machine.world, " devices are not a multiple of tensor * pipeline * context = ", ranks,
                  nearest_multiples(p.machine.world, ranks));
  });
}

/// B1: the global batch is a multiple of one microbatch over all data ranks.
bool batch_by_data(const PlanProblem& p, Candidate& c, std::string* reason) {
  const int64_t slice = int64_t{c.micro_batch} * c.data;
  c.global_batch = p.global_batch > 0 ? p.global_batch : p.max_global_batch / slice * slice;
  c.microbatches = c.global_batch / slice;
  const int64_t asked = p.global_batch > 0 ? p.global_batch : p.max_global_batch;
  return broken_if(c.microbatches == 0 || c.global_batch % slice != 0, reason, [&] {
    return concat("global batch ", asked, " is not a multiple of micro-batch ", c.micro_batch, " * data ",
                  c.data, nearest_multiples(asked, slice));
  });
}

/// The id of the first broken rule; nullptr: none.
const char* first_broken(const PlanProblem& p, Candidate& c, std::string* reason) {
  if (world_by_ranks(p, c, reason)) return "W1";
  if (batch_by_data(p, c, reason)) return "B1";
  for (const Rule& rule : kRules)
    if (rule.broken(p, c, reason)) return rule.id;
  return nullptr;
}

}  // namespace

bool graphs_exclude_recomputation(const PlanProblem& p) {
  return p.software.cuda_graphs && takes_megatrons_options(p.software);
}

const char* missing_products(const Accelerator& device, Precision precision) {
  if (precision == Precision::kNvfp4 && device.fp4_flops <= 0) return "products in 4 bits";
  if (precision == Precision::kMxfp8 && device.fp4_flops <= 0)
    return "products of 8-bit numbers that are scaled in blocks";
  if (precision == Precision::kFp8 && device.fp8_flops <= 0) return "products in 8 bits";
  return nullptr;
}

const char* broken_rule(const PlanProblem& p, Candidate& c) {
  return first_broken(p, c, nullptr);
}

std::optional<Rejection> complete(const PlanProblem& p, Candidate& c) {
  std::string reason;
  const char* const rule = first_broken(p, c, &reason);
  return rule ? std::optional(Rejection{rule, reason}) : std::nullopt;
}

}  // namespace megalith

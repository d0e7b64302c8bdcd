#include <cmath>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/model/measure.h"
#include "libcore/plan/report/plan_json.h"
#include "libcore/plan/report/plan_text.h"
#include "libcore/plan/search/search.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt;
using test::gpt_22b;
using test::llama;

Candidate legal(const PlanProblem& p, Candidate c) {
  const auto rejection = complete(p, c);
  EXPECT_FALSE(rejection) << rejection->reason;
  return c;
}

// Published parameter counts: GPT-2 small, LLaMA-7B, Llama-3 8B (sums over the tensors of the released
// weights).
TEST(ParameterCount, EqualsThePublishedModels) {
  EXPECT_EQ(total_parameters(gpt(12, 768, 12, 1024, 50257)), 124439808.0);
  EXPECT_EQ(total_parameters(llama(32, 4096, 32, 32, 11008, 32000)), 6738415616.0);
  EXPECT_EQ(total_parameters(llama(32, 4096, 32, 8, 14336, 128256)), 8030261248.0);
}

TEST(ParameterCount, OfARankIsTheShardedPartAndTheRepeatedPart) {
  const ModelConfig m = gpt(2, 64, 4, 32, 512);
  // qkv 64*192/2 + 96, proj 64*64/2 + 64, fc1 64*256/2 + 128, fc2 256*64/2 + 64, two LayerNorms of 2*64
  EXPECT_EQ(count_parameters(m, 2).block, 6144.0 + 96 + 2048 + 64 + 8192 + 128 + 8192 + 64 + 256);
  EXPECT_EQ(count_parameters(m, 2).embedding, 512.0 * 64 / 2 + 32 * 64);
}

// The planner prices a million partitions with closed forms, which must not drift from the layers that are
// trained.
TEST(ClosedForms, EqualTheRealStage) {
  const ModelConfig plain = llama(2, 64, 4, 2, 176, 512);
  ModelConfig shapes[] = {gpt(2, 64, 4, 32, 512), plain, plain, plain, plain};
  shapes[2].qk_layernorm = true;  // it is normalized again in the backward pass, so nothing more is kept
  shapes[3].qk_layernorm = shapes[3].qk_norm_all_heads = true;
  shapes[3].norm_placement = NormPlacement::kAfter;
  shapes[4].norm_placement = NormPlacement::kBoth;
  for (ModelConfig& m : shapes) {
    m.attention_dropout = m.hidden_dropout = 0;  // Megatron keeps the masks; our trainer recomputes them
    m.seq_length = m.max_positions = 32;
    for (int tensor : {1, 2}) {
      const auto with_layers = [&](int layers) {
        return measure(
            {.model = m, .layers = {0, layers}, .split = {.rank = 0, .size = tensor}, .micro_batch = 2});
      };
      const StageCost one = with_layers(1), two = with_layers(2);
      EXPECT_EQ(static_cast<double>(two.parameters - one.parameters), count_parameters(m, tensor).block);
      PlanProblem p{.model = m,
                    .machine = {find_accelerator("A100"), tensor, tensor},
                    .precision = Precision::kFloat32};
      p.global_batch = 2;
      const double planned = block_activations(p, legal(p, {.tensor = tensor, .micro_batch = 2}));
      // Mean and rstd of up to four norms, or the sums of those over all heads, fp32; the planner ignores
      // them.
      const double statistics = (m.layer_norms() + 2) * 4.0 * 32 * 2;
      EXPECT_NEAR(static_cast<double>(two.tape - one.tape), planned,
                  statistics + 256 * 16);  // tensors start at multiples of 256 bytes
    }
  }
}

// Korthikanti et al. 2022, table 2: 34 sbh/t with sequence parallelism, sbh(10 + 24/t) without; plus 4 bytes
// of log-sum-exp per head.
TEST(BlockActivations, AreKorthikantisTable) {
  const PlanProblem p = gpt_22b(64);
  const double sbh = 2048.0 * 1 * 6144, lse = 2048.0 * 4 * 64 / 8;
  Candidate c = legal(p, {.tensor = 8, .sequence = true});
  EXPECT_DOUBLE_EQ(block_activations(p, c), 34 * sbh / 8 + lse);
  c.sequence = false;
  EXPECT_DOUBLE_EQ(block_activations(p, c), sbh * (10 + 24.0 / 8) + lse);
  c.recompute = Recomputed::kFull;
  EXPECT_DOUBLE_EQ(block_activations(p, c), 2 * sbh);
}

// 64 heads of 2048 x 2048 scores over 8 tensor ranks, 2 bytes each.
TEST(BlockActivations, HoldTheScoresTwiceWhereTheSoftmaxKeepsItsInput) {
  PlanProblem p = gpt_22b(64);
  p.software.attention = AttentionKernel::kFusedSoftmax;
  const Candidate c = legal(p, {.tensor = 8});
  const double once = block_activations(p, c);
  p.software.keeps_softmax_input = true;
  EXPECT_DOUBLE_EQ(block_activations(p, c) - once, 2.0 * 64 / 8 * 2048 * 2048);
}

// The two products of attention have 4 s^2 h operations. If a head is not a whole number of the matrix units'
// 16-byte words, they run at a share of the A100's 19.5 TFLOP/s in fp32.
TEST(LayerPrice, HeadsThatAreNoMultipleOfEightUseTheVectorUnits) {
  Coefficients half = fitted_coefficients();
  half.vector_rate = 0.5;
  half.head_half_depth = 0;
  Coefficients quarter = half;
  quarter.vector_rate = 0.25;
  const auto slower = [&](int heads) {
    PlanProblem p = gpt_22b(8);
    p.model = gpt(4, 13824, heads, 2048, 50257);
    p.software.attention = AttentionKernel::kFusedSoftmax;
    p.coefficients = &half;
    const double fast = price_layer(p, {}).again_attention;
    p.coefficients = &quarter;
    return price_layer(p, {}).again_attention - fast;
  };
  const double operations = 4.0 * 2048 * 2048 * 13824;
  EXPECT_NEAR(slower(128), 2 * operations / 19.5e12, 1e-9);  // 108 channels
  EXPECT_EQ(slower(144), 0);                                 // 96 channels
}

// 2048 x 6144 values of 2 bytes: a device sends all of them over 200 Gbit/s; with scattered messages it sends
// an eighth, and gathers the other seven eighths over 300 GB/s.
TEST(StepTime, ScatteredMessagesSendAPartAndGatherTheWhole) {
  Coefficients plain = fitted_coefficients();
  plain.network_rate = plain.link_rate = 1;
  plain.network_latency = plain.link_latency = plain.message_stall = 0;
  PlanProblem p = gpt_22b(16);
  p.coefficients = &plain;
  const Candidate c = legal(p, {.tensor = 8, .pipeline = 2});
  const double whole = step_time(p, c).pipeline_comm;
  const double bytes = 2.0 * 2048 * 6144, hops = 2 * (16 + 1);
  EXPECT_NEAR(whole, hops * bytes / 25e9, 1e-12);
  p.software.scatters_messages = true;
  EXPECT_NEAR(step_time(p, c).pipeline_comm, hops * (bytes / 8 / 25e9 + 7.0 / 8 * bytes / 300e9), 1e-12);
}

// Megatron-LM's README, "Distributed Optimizer": a bf16 parameter with an fp32 gradient takes 18 bytes, or 6
// + 12/d if sharded; an fp32 parameter takes 16, or 8 + 8/d.
TEST(MemoryEstimate, StateBytesPerParameterAreMegatrons) {
  PlanProblem p = gpt_22b(64);
  const auto state = [&](bool sharded) {
    const Candidate c = legal(p, {.tensor = 8, .sharding = sharded ? Sharding::kOptimizer : Sharding::kNone});
    const MemoryEstimate estimate = memory_estimate(p, c, 0);
    const ParameterCount n = count_parameters(p.model, 8);
    return (estimate.parameters + estimate.gradients + estimate.optimizer) /
           (n.block * 48 + n.embedding + n.head);
  };
  EXPECT_DOUBLE_EQ(state(false), 18);
  EXPECT_DOUBLE_EQ(state(true), 6 + 12.0 / 8);
  p.precision = Precision::kFloat32;
  EXPECT_DOUBLE_EQ(state(false), 16);
  EXPECT_DOUBLE_EQ(state(true), 8 + 8.0 / 8);
}

// bitsandbytes: a StableEmbedding keeps both of its moments in 32 bits, 8 bytes in place of 2.
TEST(MemoryEstimate, EightBitAdamLeavesTablesOut) {
  PlanProblem p = gpt_22b(1);
  p.global_batch = 1;
  const Candidate c = legal(p, {});
  const double wide = memory_estimate(p, c, 0).optimizer;
  p.software.adam_8bit = true;
  EXPECT_NEAR(wide - memory_estimate(p, c, 0).optimizer,
              6 * (count_parameters(p.model, 1).block * 48 + 2 * 6144), 1);
}

TEST(MemoryEstimate, EarlierStagesHoldMoreMicrobatches) {
  PlanProblem p = gpt_22b(8);
  const Candidate c = legal(p, {.tensor = 2, .pipeline = 4});
  const double first = memory_estimate(p, c, 0).activations, third = memory_estimate(p, c, 2).activations;
  EXPECT_NEAR(first / third, 4.0 / 2.0, 0.01);  // 1F1B holds (pipeline - stage) microbatches
}

// Quantiles of the normal distribution, as tables print them.
constexpr std::pair<double, double> kNormal[] = {
    {0.5, 0}, {0.75, 0.67449}, {0.9, 1.28155}, {0.95, 1.64485}, {0.99, 2.32635}};

TEST(FitProbability, IsThatOfANormalLogarithm) {
  PlanProblem p = gpt_22b(8);
  const double usable = usable_memory(p), spread = p.coefficients->memory_spread;
  for (const auto& [probability, deviations] : kNormal) {
    const double bytes = usable * std::exp(-deviations * spread);
    EXPECT_NEAR(fit_probability(p, bytes), probability, 1e-5);
    EXPECT_NEAR(fit_probability(p, usable * usable / bytes), 1 - probability, 1e-5);
    p.asked_probability = probability;
    EXPECT_NEAR(allowed_memory(p) / bytes, 1, 1e-5) << probability;
  }
  p.trained_here = true;  // what our trainer counts is certain
  EXPECT_EQ(allowed_memory(p), usable);
  EXPECT_EQ(fit_probability(p, usable), 1);
  EXPECT_EQ(fit_probability(p, usable * 1.001), 0);
}

TEST(FitProbability, IsWhatASearchAsksOfEveryPlan) {
  PlanProblem p = gpt_22b(16);
  p.machine.device.memory = 40e9;
  p.asked_probability = 0.95;
  const SearchResult sure = search_plans(p, {}, 50);
  ASSERT_FALSE(sure.plans.empty());
  for (const Plan& plan : sure.plans)
    EXPECT_GE(fit_probability(p, plan.memory.estimate.needed()), 0.95 - 1e-9);
  p.asked_probability = 0.5;
  EXPECT_GE(search_plans(p, {}, 1).plans.front().tokens_per_second(p),
            sure.plans.front().tokens_per_second(p));
}

TEST(Search, FindsPlansThatFitFastestFirst) {
  const PlanProblem p = gpt_22b(64);
  const SearchResult r = search_plans(p, {});
  ASSERT_GT(r.plans.size(), 10u);
  for (size_t i = 0; i < r.plans.size(); ++i) {
    Candidate again = r.plans[i].candidate;
    EXPECT_FALSE(complete(p, again));
    EXPECT_LE(r.plans[i].memory.estimate.device(), p.machine.device.memory);
    if (i > 0) {
      EXPECT_GE(r.plans[i - 1].tokens_per_second(p), r.plans[i].tokens_per_second(p));
    }
  }
}

TEST(Search, MoreMemoryNeverLosesAPlan) {
  PlanProblem p = gpt_22b(64);
  int64_t before = 0;
  for (double gb : {20.0, 40.0, 80.0, 160.0}) {
    p.machine.device.memory = gb * 1e9;
    const int64_t found = search_plans(p, {}, 20, SearchMode::kExhaustive).fitting.value();
    EXPECT_GE(found, before);
    before = found;
  }
}

TEST(Search, KeepsWhatTheUserFixed) {
  const Fixed fixed{.tensor = 4, .pipeline = 2, .recompute = Recomputed::kNone};
  for (const Plan& plan : search_plans(gpt_22b(64), fixed).plans) {
    EXPECT_EQ(plan.candidate.tensor, 4);
    EXPECT_EQ(plan.candidate.pipeline, 2);
    EXPECT_EQ(plan.candidate.recompute, Recomputed::kNone);
  }
}

TEST(Search, SaysWhatIsMissingWhenNothingFits) {
  PlanProblem p = gpt_22b(8);
  p.machine.device.memory = 8e9;
  const SearchResult r = search_plans(p, {});
  EXPECT_TRUE(r.plans.empty());
  ASSERT_TRUE(r.closest);
  EXPECT_NE(plan_text({.problem = p, .result = r}, PlanDetail::kAnswer).find("nothing fits"),
            std::string::npos);
}

TEST(PlanText, IsTheSameForTheSameInput) {
  const PlanProblem p = gpt_22b(64);
  const auto text = [&] {
    const SearchResult r = search_plans(p, {}, 3);
    return plan_json({.problem = p, .result = r, .trainer = std::vector<TrainerAnswer>(3)});
  };
  EXPECT_EQ(text(), text());
}

TEST(Accelerator, IsFoundByAShortName) {
  EXPECT_EQ(find_accelerator("h100").name, "H100-SXM-80GB");
  EXPECT_EQ(find_accelerator("a100_sxm_40gb").name, "A100-SXM-40GB");
  EXPECT_THROW(find_accelerator("H1000"), Error);
}

}  // namespace
}  // namespace megalith

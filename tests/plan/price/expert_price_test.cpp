#include "libcore/plan/price/expert_price.h"

#include <gtest/gtest.h>

#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::mixtral;

ExpertPrice price(const PlanProblem& p, const LayerShape& shape) {
  return price_experts(KernelRates(p), shape);
}

// 4096 tokens with 4096 channels of 2 bytes go to 2 of 8 experts each; each of eight ranks keeps an eighth.
TEST(TokenTraffic, IsTheCopiesThatLeave) {
  PlanProblem p = mixtral(64);
  const double copies = 4096.0 * 2 * 4096 * 2;
  TokenTraffic traffic = token_traffic(p, {.expert = 8});
  EXPECT_DOUBLE_EQ(traffic.inside, copies * 7 / 8);
  EXPECT_EQ(traffic.outside, 0);
  EXPECT_EQ(traffic.machines, 1);
  // With two ranks for each expert's matrices, a machine has only four of the eight expert ranks.
  traffic = token_traffic(p, {.expert = 8, .expert_tensor = 2});
  EXPECT_DOUBLE_EQ(traffic.inside, copies * 3 / 8);
  EXPECT_DOUBLE_EQ(traffic.outside, copies * 4 / 8);
  EXPECT_EQ(traffic.machines, 2);
  // Each tensor rank has a part of the sequence.
  EXPECT_DOUBLE_EQ(token_traffic(p, {.tensor = 2, .sequence = true, .expert = 8}).inside, copies / 2 * 7 / 8);
  p.model.dispatcher = Dispatcher::kAllGather;  // each token goes to all eight ranks
  EXPECT_DOUBLE_EQ(token_traffic(p, {.expert = 8}).inside, copies / 2 * 7);
}

// 64 experts on 4 machines of 8 ranks: the mean number of machines that have one of a token's three experts,
// by counting.
TEST(TokenTraffic, OfDeepEpIsOneCopyForAMachine) {
  PlanProblem p = mixtral(64);
  p.model.experts = 64;
  p.model.router_topk = 3;
  p.model.dispatcher = Dispatcher::kFlex;
  double visited = 0, choices = 0;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 4; ++c, ++choices) visited += 1 + (b != a) + (c != a && c != b);
  const TokenTraffic traffic = token_traffic(p, {.expert = 32});
  EXPECT_NEAR(traffic.outside, 4096.0 * 4096 * 2 * visited / choices * 3 / 4, 1);
  EXPECT_EQ(traffic.machines, 4);
  p.model.dispatcher = Dispatcher::kAllToAll;
  EXPECT_LT(traffic.outside, token_traffic(p, {.expert = 32}).outside);
}

// A token's three experts are in two of the groups, and the groups are placed on the machines in order.
// Expected values by counting.
TEST(TokenTraffic, OfDeepEpStaysInTheGroupsThatATokenMayChoose) {
  PlanProblem p = mixtral(64);
  p.model.experts = 64;
  p.model.router_topk = 3;
  p.model.dispatcher = Dispatcher::kFlex;
  p.model.group_topk = 2;
  const auto machines_visited = [&](int groups) {
    p.model.router_groups = groups;
    return token_traffic(p, {.expert = 32}).outside / (4096.0 * 4096 * 2 * 3 / 4);
  };
  // Four groups, one per machine: of the 8 ways to place three experts on two machines, 2 visit only one
  // machine.
  EXPECT_NEAR(machines_visited(4), (2 * 1 + 6 * 2) / 8.0, 1e-12);
  // Two groups of two machines each, both of them chosen: the same number as without groups.
  const double both = machines_visited(2);
  p.model.group_topk.reset();
  EXPECT_DOUBLE_EQ(both, machines_visited(2));
  // One of the two groups chosen: two machines, as with two of four groups.
  p.model.group_topk = 1;
  EXPECT_NEAR(machines_visited(2), 14 / 8.0, 1e-12);
  // Eight groups, two per machine: 4 of the 28 pairs of groups are on one machine. A thousand experts per
  // token visit every machine of the chosen groups.
  p.model.router_topk = 1000;
  p.model.group_topk = 2;
  EXPECT_NEAR(machines_visited(8), (4 * 1 + 24 * 2) / 28.0, 1e-9);
  p.model.dispatcher = Dispatcher::kAllToAll;  // each copy travels separately
  p.model.router_topk = 3;
  EXPECT_NEAR(machines_visited(8), 3, 1e-12);
}

// Tokens go to their experts and back over NVLink, at exchange_rate times 450 GB/s, in each of the two
// passes.
TEST(ExpertPrice, ExchangesOverTheLinkOrTheNetwork) {
  Coefficients plain = fitted_coefficients();
  plain.exchange_rate = 0.5;
  plain.congestion = plain.link_latency = plain.network_latency = 0;
  PlanProblem p = mixtral(64);
  p.coefficients = &plain;
  p.model.forced_balance = true;
  const double copies = 4096.0 * 2 * 4096 * 2;
  EXPECT_NEAR(price(p, {.expert = 8}).exchange, 2 * copies * 7 / 8 / (0.5 * 450e9), 1e-9);
  EXPECT_EQ(price(p, {.expert = 1}).exchange, 0);
  p.machine.local_world = 4;  // half of the ranks are reached over 400 Gbit/s
  EXPECT_NEAR(price(p, {.expert = 8}).exchange,
              2 * (copies * 3 / 8 / (0.5 * 450e9) + copies * 4 / 8 / (0.5 * 50e9)), 1e-9);
}

// The fullest of 8 experts exceeds the mean by 1.42360 / 2.34373 of what the fullest of 64 does.
constexpr double kFullestOf8 = 1 + 0.72 * 1.42360 / 2.34373;

TEST(ExpertPrice, TheFullestRankIsWaitedFor) {
  Coefficients plain = fitted_coefficients();
  plain.link_latency = 0;
  PlanProblem p = mixtral(64);
  p.coefficients = &plain;
  p.imbalance_point = 1;
  const ExpertPrice uneven = price(p, {.expert = 8});
  p.model.forced_balance = true;
  const ExpertPrice even = price(p, {.expert = 8});
  EXPECT_NEAR(uneven.exchange / even.exchange, kFullestOf8, 1e-5);
  EXPECT_GT(uneven.forward, 1.25 * even.forward);
  EXPECT_NEAR(uneven.kept_tokens / even.kept_tokens, kFullestOf8, 1e-5);
}

// All tokens go to all ranks, whichever experts they chose: only the work is uneven.
TEST(ExpertPrice, AGatherIsTheSameForAnyBalance) {
  PlanProblem p = mixtral(64);
  p.imbalance_point = 1;
  p.model.dispatcher = Dispatcher::kAllGather;
  PlanProblem even = p;
  even.model.forced_balance = true;
  for (int parts : {1, 2}) {
    const LayerShape shape{.tensor = 2, .sequence = true, .expert = 4, .expert_tensor = parts};
    EXPECT_GT(price(p, shape).exchange, 0);
    EXPECT_DOUBLE_EQ(price(p, shape).exchange, price(even, shape).exchange) << parts;
    EXPECT_GT(price(p, shape).forward, price(even, shape).forward) << parts;
  }
}

// For each of a token's two copies, a rank keeps the input (h), the two gates before the activation (2f) and
// its result (f) in 16 bits, and the copy's weight in 4 bytes. For each token it keeps 8 scores,
// probabilities and choices.
TEST(ExpertPrice, KeepsEachCopyOfATokenOnce) {
  PlanProblem p = mixtral(64);
  p.model.forced_balance = true;
  const double copies = 4096.0 * 2;
  const ExpertPrice whole = price(p, {.expert = 8});
  EXPECT_DOUBLE_EQ(whole.kept, copies * (2 * (4096 + 3 * 14336.0) + 4) + 4096 * 8 * (4 + 4 + 1));
  EXPECT_DOUBLE_EQ(whole.kept_act, copies * 2 * 14336);
  // Two ranks that share an expert's matrices each receive the tokens of both ranks, and work on half of the
  // width.
  const ExpertPrice halves = price(p, {.expert = 4, .expert_tensor = 2});
  EXPECT_DOUBLE_EQ(halves.kept_tokens, 2 * whole.kept_tokens);
  EXPECT_DOUBLE_EQ(halves.kept_act, whole.kept_act);
}

// 64 experts of an eighth of the width: the number of operations stays, but each of a rank's eight experts
// has an eighth of the tokens.
TEST(ExpertPrice, ManySmallExpertsAreSlowerThanAFewLargeOnes) {
  PlanProblem p = mixtral(64);
  p.model.forced_balance = true;
  const double large = price(p, {.expert = 8}).forward;
  p.model.experts = 64;
  p.model.router_topk = 16;
  p.model.expert_ffn = 14336 / 8;
  EXPECT_GT(price(p, {.expert = 8}).forward, 1.1 * large);
}

// With eight expert ranks each expert is on one rank of eight data ranks. A parameter takes 18 bytes; with
// ZeRO-1, 6 bytes plus 12 divided by the ranks that hold the same parameter; with ZeRO-3 all 18 are divided.
TEST(MemoryEstimate, OfExpertsIsShardedOverTheirRanks) {
  const PlanProblem p = mixtral(64);
  const auto state = [&](Sharding sharding, int expert) {
    Candidate c{.expert = expert, .sharding = sharding};
    EXPECT_FALSE(complete(p, c));
    const MemoryEstimate estimate = memory_estimate(p, c, 0);
    return estimate.parameters + estimate.gradients + estimate.optimizer;
  };
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, rest = 46702792704.0 - experts;
  EXPECT_NEAR(state(Sharding::kNone, 8), 18 * (experts / 8 + rest), 1e3);
  EXPECT_NEAR(state(Sharding::kOptimizer, 8), 6 * (experts / 8 + rest) + 12 * (experts / 8 / 8 + rest / 64),
              1e3);
  EXPECT_NEAR(state(Sharding::kParameters, 8), 18 * (experts / 8 / 8 + rest / 64), 1e3);
  EXPECT_NEAR(state(Sharding::kOptimizer, 1), 6 * (experts + rest) + 12 * (experts + rest) / 64, 1e3);
}

TEST(MemoryEstimate, OfStagesWithoutExpertsIsThatOfADenseModel) {
  PlanProblem p = mixtral(64), dense = mixtral(64);
  p.model.layer_freq = "([0]*16+[1]*16)";
  p.model.finish();
  dense.model.experts.reset();
  Candidate c{.pipeline = 2}, same = c;
  ASSERT_FALSE(complete(p, c));
  ASSERT_FALSE(complete(dense, same));
  const MemoryEstimate without = memory_estimate(p, c, 0), of_dense = memory_estimate(dense, same, 0);
  EXPECT_EQ(without.parameters, of_dense.parameters);
  EXPECT_DOUBLE_EQ(without.activations, of_dense.activations);
  EXPECT_GT(memory_estimate(p, c, 1).parameters, 4 * without.parameters);
}

// 6 operations per token for each of 12.9 billion active parameters without the embedding, plus half of the
// operations of the scores.
TEST(ModelFlops, OfAMixtureAreThoseOfTheChosenExperts) {
  const PlanProblem p = mixtral(64);
  const double matrices = 12879925248.0 - 32000 * 4096.0 - 65 * 4096;  // active, without embedding and norms
  const double tokens = 256.0 * 4096, scores = 6 * tokens * 4096 * 4096 * 32;
  EXPECT_NEAR(model_flops(p, 256), 6 * tokens * matrices + scores, 1e9);
}

TEST(StepTime, OfAMixtureNamesWhatTheTokensWayTakes) {
  PlanProblem p = mixtral(64);
  Candidate c{.expert = 8, .sharding = Sharding::kOptimizer};
  ASSERT_FALSE(complete(p, c));
  const StepTime apart = step_time(p, c);
  EXPECT_NEAR(apart.expert_comm,
              static_cast<double>(c.microbatches) * 32 * 2 * price(p, {.expert = 8}).exchange, 1e-9);
  p.software.overlap_exchange = true;
  EXPECT_LT(step_time(p, c).expert_comm, apart.expert_comm);
  c.expert = 1;
  EXPECT_EQ(step_time(p, c).expert_comm, 0);
}

// Wide shared experts hide the whole exchange of tokens; narrow ones hide only as much time as their work
// takes.
TEST(StepTime, OfSharedExpertsBesideTheExchangeHidesIt) {
  Coefficients whole = fitted_coefficients();
  whole.exchange_overlap = 1;
  PlanProblem p = mixtral(64);
  p.coefficients = &whole;
  const auto left = [&](int width, bool beside) {
    p.model.shared_ffn = width;
    p.model.shared_overlap = beside;
    Candidate c{.expert = 8};
    EXPECT_FALSE(complete(p, c));
    return step_time(p, c).expert_comm;
  };
  EXPECT_GT(left(1 << 15, false), 0);
  EXPECT_EQ(left(1 << 15, true), 0);
  EXPECT_LT(left(256, true), left(256, false));
  EXPECT_GT(left(256, true), 0);
  EXPECT_EQ(left(256, false), left(1 << 15, false));
}

// Eight tensor ranks that each have all experts (ep 1, etp 1) hold eight copies of them, although there is
// only one data rank. The fp32 gradients of 32 layers of 8 experts of three matrices go twice around a ring
// over NVLink's 450 GB/s.
TEST(StepTime, OfOneDataRankExchangesWhatItsTensorRanksHoldAlike) {
  Coefficients plain = fitted_coefficients();
  plain.link_rate = 0.5;
  plain.link_latency = 0;
  PlanProblem p = mixtral(8);
  p.coefficients = &plain;
  p.software.overlap_gradients = p.software.overlap_parameters = false;
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, link = 0.5 * 450e9;
  Candidate c{.tensor = 8, .sequence = true};
  const auto exchanged = [&](Candidate one) {
    EXPECT_FALSE(complete(p, one));
    return step_time(p, one).data_comm;
  };
  EXPECT_NEAR(exchanged(c), 2 * 7 / 8.0 * 4 * experts / link, 1e-9);
  c.expert = 2;  // four ranks hold each half of the experts
  EXPECT_NEAR(exchanged(c), 2 * 3 / 4.0 * 4 * experts / 2 / link, 1e-9);
  c.sharding = Sharding::kOptimizer;  // a scatter of gradients, and a gather of parameters in 16 bits
  EXPECT_NEAR(exchanged(c), 3 / 4.0 * (4 + 2) * experts / 2 / link, 1e-9);
  c = {.tensor = 8, .expert = 8, .sequence = true};
  EXPECT_EQ(exchanged(c), 0);
  c = {.tensor = 8, .expert = 2, .expert_tensor = 4, .sequence = true};
  EXPECT_EQ(exchanged(c), 0);
  p.model.experts.reset();
  c = {.tensor = 8, .sequence = true};
  EXPECT_EQ(exchanged(c), 0);
}

// docs/planner.md: 39 % to each side for experts, 16.3 % for dense models.
TEST(ExpertPrice, HasAWiderInterval) {
  PlanProblem p = mixtral(64);
  EXPECT_NEAR(interval(p, 1).high, 1.39, 0.005);
  EXPECT_NEAR(interval(p, 1).low * interval(p, 1).high, 1, 1e-12);
  p.model.experts.reset();
  EXPECT_NEAR(interval(p, 1).high, 1.163, 0.005);
}

// DeepSeek-V3 (arXiv 2412.19437), section 3.2.2: tokens leave in 8 bits and come back in 16.
TEST(ExpertPrice, SendsThreeQuartersOfTheBytesWhereTokensLeaveInEightBits) {
  PlanProblem p = mixtral(64);
  Coefficients k = fitted_coefficients();
  k.link_latency = k.network_latency = 0;
  p.coefficients = &k;
  const double wide = price(p, {.expert = 8}).exchange;
  p.software.narrow_dispatch = true;
  EXPECT_NEAR(price(p, {.expert = 8}).exchange / wide, 0.75, 1e-9);
}

}  // namespace
}  // namespace megalith

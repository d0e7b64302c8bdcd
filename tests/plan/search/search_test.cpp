#include "libcore/plan/search/search.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/search/explain.h"
#include "libcore/plan/search/goal.h"
#include "libcore/plan/simulation/simulation.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt;
using test::gpt_22b;
using test::llama;
using test::mixtral;

void expect_same(const SearchResult& a, const SearchResult& b) {
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_EQ(a.plans[i].candidate, b.plans[i].candidate) << i;
    EXPECT_EQ(a.plans[i].time.total(), b.plans[i].time.total()) << i;
    EXPECT_EQ(a.plans[i].memory.estimate.device(), b.plans[i].memory.estimate.device()) << i;
  }
}

PlanProblem gpt_175b(int world, int64_t batch) {
  PlanProblem p;
  p.model = gpt(96, 12288, 96, 2048, 51200);
  p.machine = {find_accelerator("A100-SXM-80GB"), world, 8};
  p.global_batch = batch;
  return p;
}

// Counted independently by a nested loop over the space that search.h describes: 1,274,620.
TEST(Search, PricesEveryLegalCandidateOfTheLargeSpace) {
  const PlanProblem p = gpt_175b(4096, 4096);
  const SearchResult all = search_plans(p, {}, 20, SearchMode::kExhaustive), bounded = search_plans(p, {});
  EXPECT_EQ(all.candidates, 1274620);
  EXPECT_EQ(all.priced, 1274620);
  EXPECT_EQ(bounded.candidates, 1274620);
  EXPECT_LT(bounded.priced, 300000);
  expect_same(all, bounded);
}

TEST(Search, BoundsLoseNoPlanInOtherSpaces) {
  std::vector<PlanProblem> problems = {gpt_22b(64), gpt_22b(8), gpt_175b(64, 128)};
  problems.push_back(gpt_22b(24));
  problems.back().model.layers = 50;  // an uneven partition
  problems.push_back(gpt_22b(16));
  problems.back().machine.device.memory = 30e9;
  problems.push_back(gpt_22b(128));
  problems.back().software.attention = AttentionKernel::kTorch;
  problems.back().software.overlap_gradients = problems.back().software.overlap_parameters = false;
  for (const PlanProblem& p : problems)
    expect_same(search_plans(p, {}, 20, SearchMode::kExhaustive), search_plans(p, {}));
}

TEST(Search, BoundsLoseNoPlanOfAMixture) {
  std::vector<PlanProblem> problems = {mixtral(64), mixtral(16)};
  problems.push_back(mixtral(64));  // dense layers and layers with experts; little memory
  problems.back().model.layer_freq = "[0]*3+[1]*29";
  problems.back().model.shared_ffn = 4096;
  problems.back().model.finish();
  problems.back().machine.device.memory = 40e9;
  problems.push_back(mixtral(64));
  problems.back().model.dispatcher = Dispatcher::kFlex;
  problems.back().model.predicted = 1;
  problems.back().software.overlap_exchange = problems.back().software.overlap_tensor = true;
  problems.push_back(mixtral(64));  // many rules about experts apply
  problems.back().model.linear_bias = problems.back().model.expert_bias = true;
  problems.back().model.shared_ffn = 4096;
  problems.back().model.shared_overlap = true;
  problems.back().model.dispatcher = Dispatcher::kFlex;
  for (const PlanProblem& p : problems) {
    const SearchResult all = search_plans(p, {}, 20, SearchMode::kExhaustive), bounded = search_plans(p, {});
    EXPECT_EQ(all.plans.size(), 20u);
    EXPECT_EQ(all.priced, all.candidates);
    EXPECT_LT(bounded.priced, all.priced);
    expect_same(all, bounded);
  }
}

// The partitions of 16 devices, counted by hand: each legal one is examined once.
TEST(Search, LooksAtEveryNumberOfExpertRanks) {
  const PlanProblem p = mixtral(16);
  const Fixed fixed{
      .tensor = 2, .pipeline = 2, .context = 1, .chunks = 1, .micro_batch = 1, .sequence = true};
  const SearchResult all = search_plans(p, fixed, 1, SearchMode::kExhaustive);
  // Expert sizes 1, 2, 4 and 8, with expert-tensor sizes 1 and 2, over the 8 ranks of a stage. Of these 8
  // partitions, only 8 * 2 needs too many ranks.
  EXPECT_EQ(all.families, 8);
  EXPECT_EQ(all.rejected.at("W2"), 1);
  // Recomputation of none, attention, or 1 to 16 layers, with ZeRO 0 to 3.
  EXPECT_EQ(all.candidates, 7 * (2 + 16) * 4);
}

// E1, E2 and E4: partitions that Megatron would refuse are not among the plans, and are counted as rejected.
TEST(Search, LeavesOutWhatMegatronRefusesOfExperts) {
  PlanProblem p = mixtral(64);
  p.model.dispatcher = Dispatcher::kFlex;
  p.model.linear_bias = true;
  const SearchResult flex = search_plans(p, {}, 1000);
  EXPECT_GT(flex.rejected.at("E1"), 0);
  EXPECT_GT(flex.rejected.at("E4"), 0);
  ASSERT_FALSE(flex.plans.empty());
  for (const Plan& plan : flex.plans) {
    EXPECT_GT(plan.candidate.expert, 1);
    EXPECT_EQ(plan.candidate.expert_tensor, 1);
  }
  p.software.overlap_exchange = true;
  const SearchResult overlapped = search_plans(p, {}, 1000);
  EXPECT_GT(overlapped.rejected.at("E2"), 0);
  ASSERT_FALSE(overlapped.plans.empty());
  for (const Plan& plan : overlapped.plans) {
    EXPECT_NE(plan.candidate.recompute, Recomputed::kFull);
    EXPECT_TRUE(plan.candidate.pipeline == 1 || plan.candidate.chunks > 1);
  }
  const SearchResult none = search_plans(p, {.recompute = Recomputed::kFull}, 1);
  EXPECT_EQ(none.candidates, 0);
  EXPECT_NE(none.example.at("E2").find("needs no layers recomputed whole"), std::string::npos);
}

TEST(Search, KeepsTheExpertRanksThatAreGiven) {
  Fixed fixed;
  fixed.expert = 4;
  fixed.expert_tensor = 1;
  for (const Plan& plan : search_plans(mixtral(64), fixed).plans) {
    EXPECT_EQ(plan.candidate.expert, 4);
    EXPECT_EQ(plan.candidate.expert_tensor, 1);
  }
}

// With one data rank, a dense model has nothing to shard. A model with experts has: with fewer expert ranks
// than tensor ranks, several tensor ranks hold the same experts.
TEST(Search, ShardsExpertsOfOneDataRankToo) {
  PlanProblem p = mixtral(8);
  p.model.layers = 16;
  p.global_batch = 64;
  const Fixed fixed{.tensor = 8, .pipeline = 1, .context = 1};
  const SearchResult all = search_plans(p, fixed, 20, SearchMode::kExhaustive),
                     bounded = search_plans(p, fixed, 20);
  expect_same(all, bounded);
  EXPECT_LT(bounded.priced, all.priced);
  const auto least_memory = [&](std::optional<Sharding> sharding) {
    Fixed one{.tensor = 8, .pipeline = 1, .context = 1, .micro_batch = 1, .expert = 2, .expert_tensor = 1};
    one.sharding = sharding;
    p.machine.device.memory = 1e9;  // nothing fits: the closest plan is the smallest
    return search_plans(p, one, 1).closest->memory.estimate.needed();
  };
  EXPECT_LT(least_memory({}), 0.6 * least_memory(Sharding::kNone));
  EXPECT_EQ(search_plans(p, {.tensor = 8, .pipeline = 1, .context = 1, .micro_batch = 1, .expert = 8}, 1)
                .closest->candidate.sharding,
            Sharding::kNone);  // each expert is on a single rank
}

// Meta trained Llama 3 405B with tp 8, pp 16 and one layer fewer on the first and the last stage, at 38 to 43
// % of the peak (arXiv 2407.21783).
TEST(Search, PlansLlama405BAsItWasTrained) {
  PlanProblem p;
  p.model = llama(126, 16384, 128, 8, 53248, 128256);
  p.model.seq_length = p.model.max_positions = 8192;
  p.machine = {find_accelerator("H100"), 16384, 8};
  p.software.overlap_tensor = true;
  p.global_batch = 2048;
  const SearchResult r = search_plans(p, {}, 1);
  ASSERT_EQ(r.plans.size(), 1u);
  const Plan& best = r.plans.front();
  EXPECT_EQ(best.candidate.tensor, 8);
  EXPECT_EQ(best.candidate.pipeline, 16);
  EXPECT_EQ(stage_layers(p, best.candidate, 0), 7);
  EXPECT_EQ(stage_layers(p, best.candidate, 1), 8);
  EXPECT_EQ(stage_layers(p, best.candidate, 15), 7);
  const double mfu = model_flops_utilisation(p, best.candidate, best.time.total());
  EXPECT_GT(mfu, 0.36);
  EXPECT_LT(mfu, 0.45);
  // Megatron-Bridge's runs on GB200: one layer in each chunk. Only asked for, since the first chunk has none.
  const SearchResult asked = search_plans(p, {.tensor = 8, .pipeline = 16, .chunks = 8}, 1);
  ASSERT_EQ(asked.plans.size(), 1u);
  EXPECT_EQ(stage_layers(p, asked.plans.front().candidate, 0), 7);
  EXPECT_LT(best.candidate.chunks, 8);
}

// R1: each chunk recomputes equally many layers, so with three chunks, 10 or 11 of 12 recomputed layers mean
// all 12.
TEST(Search, ListsNoRunTwice) {
  PlanProblem p = gpt_22b(32);
  p.machine.device = find_accelerator("A100-SXM-40GB");
  p.max_global_batch = 0;
  p.global_batch = 64;
  const Fixed fixed{.tensor = 4, .pipeline = 4, .context = 1, .chunks = 3, .micro_batch = 1};
  const SearchResult all = search_plans(p, fixed, 1000, SearchMode::kExhaustive);
  // With and without sequence parallelism; recomputation of none, attention, or 1 to 12 layers; with ZeRO 0
  // to 3.
  EXPECT_EQ(all.candidates, 2 * (2 + 12) * 4);
  EXPECT_EQ(all.priced, all.candidates);
  expect_same(all, search_plans(p, fixed, 1000));
  std::set<std::string> lines;
  for (const Plan& plan : all.plans) {
    EXPECT_TRUE(lines.insert(launch_options(p, plan.candidate)).second) << launch_options(p, plan.candidate);
    EXPECT_EQ(plan.candidate.recompute_layers % 3, 0);
  }
  const auto priced = [&](int layers) {
    Candidate c{.tensor = 4, .pipeline = 4, .chunks = 3, .recompute_layers = layers};
    c.recompute = Recomputed::kFull;
    EXPECT_FALSE(complete(p, c));
    return make_plan(p, c);
  };
  for (const auto& [some, same] : {std::pair{10, 0}, {11, 0}, {1, 3}, {5, 6}}) {
    EXPECT_EQ(priced(some).time.total(), priced(same).time.total()) << some;
    EXPECT_EQ(priced(some).memory.estimate.needed(), priced(same).memory.estimate.needed()) << some;
  }
  EXPECT_LT(priced(6).time.total(), priced(9).time.total());
}

// What our trainer has no option for is no plan of --software megalith, on any device.
TEST(Search, PlansNoZero3ForOurTrainer) {
  PlanProblem p = gpt_22b(64);
  const auto shards_parameters = [](const PlanProblem& problem) {
    const std::vector<Plan> plans = search_plans(problem, {.tensor = 1, .pipeline = 1}, 200).plans;
    EXPECT_FALSE(plans.empty());
    return std::any_of(plans.begin(), plans.end(),
                       [](const Plan& plan) { return plan.candidate.sharding == Sharding::kParameters; });
  };
  p.global_batch = 64;
  EXPECT_TRUE(shards_parameters(p));
  p.software.code_base = kMegalithSoftware;
  EXPECT_FALSE(shards_parameters(p));
}

// For a model with large layers, and for one with layers that wait for the host of a fast device.
TEST(Search, TimeFallsWithEachRate) {
  PlanProblem small = gpt_22b(16);
  small.model = gpt(12, 4096, 32, 1024, 32000);
  small.machine.device = find_accelerator("b200");
  small.software.overlap_tensor = true;
  for (const PlanProblem& p : {gpt_22b(64), small})
    for (double Accelerator::*rate : {&Accelerator::half_flops, &Accelerator::link_bandwidth,
                                      &Accelerator::network_bandwidth, &Accelerator::memory_bandwidth})
      for (const double factor : {1.1, 1.5}) {
        PlanProblem faster = p;
        faster.machine.device.*rate *= factor;
        for (const Plan& plan : search_plans(p, {}).plans)
          EXPECT_LE(make_plan(faster, plan.candidate).time.total(), plan.time.total()) << factor;
      }
}

// With a tenth more of any rate no plan is slower than with a tenth less.
TEST(Explain, NoPlanIsSlowerWithATenthMoreOfARate) {
  PlanProblem p = gpt_22b(16);
  p.model = gpt(12, 4096, 32, 1024, 32000);
  p.machine.device = find_accelerator("b200");
  p.software.overlap_tensor = true;
  const std::vector<Plan> plans = search_plans(p, {}).plans;
  for (const Sensitivity& s : sensitivity(p, plans)) {
    EXPECT_GE(s.less, plans.front().time.total()) << s.what;
    EXPECT_LE(s.more, plans.front().time.total()) << s.what;
  }
}

TEST(Search, TimeOfAMixtureFallsWithEachRateAndRisesWithItsImbalance) {
  const PlanProblem p = mixtral(64);
  for (const Plan& plan : search_plans(p, {}, 5).plans) {
    for (double Accelerator::*rate :
         {&Accelerator::link_bandwidth, &Accelerator::network_bandwidth, &Accelerator::memory_bandwidth}) {
      PlanProblem faster = p;
      faster.machine.device.*rate *= 1.5;
      EXPECT_LE(make_plan(faster, plan.candidate).time.total(), plan.time.total());
    }
    const Interval ends = imbalance_interval(p, plan.candidate);
    EXPECT_LE(ends.low, plan.time.total());
    EXPECT_GE(ends.high, plan.time.total());
    EXPECT_EQ(plan.candidate.expert > 1, ends.low < ends.high);
  }
}

TEST(Search, MoreReplicasOfOneLayoutAreNeverSlowerInAll) {
  double before = 0;
  for (int world : {8, 16, 32, 64, 128}) {
    PlanProblem p = gpt_22b(world);
    p.max_global_batch = 0;
    p.global_batch = 2 * world;
    Candidate c{.tensor = 8, .sequence = true, .sharding = Sharding::kOptimizer};
    ASSERT_FALSE(complete(p, c));
    const double speed = make_plan(p, c).tokens_per_second(p);
    EXPECT_GT(speed, before) << world;
    before = speed;
  }
}

TEST(Search, MoreShardingNeedsLessMemoryAndMoreRecomputationTime) {
  const PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8};
  ASSERT_FALSE(complete(p, c));
  double bytes = 1e18;
  for (Sharding sharding :
       {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients, Sharding::kParameters}) {
    c.sharding = sharding;
    const MemoryEstimate estimate = make_plan(p, c).memory.estimate;
    EXPECT_LT(estimate.parameters + estimate.gradients + estimate.optimizer, bytes);
    bytes = estimate.parameters + estimate.gradients + estimate.optimizer;
  }
  double seconds = 0;
  c.recompute = Recomputed::kFull;
  for (int layers : {1, 12, 24, 48}) {
    c.recompute_layers = layers;
    EXPECT_GT(make_plan(p, c).time.total(), seconds);
    seconds = make_plan(p, c).time.total();
  }
}

// The time of a search is that of the candidates it prices: a million take about half a second.
TEST(Search, PricesABoundedNumberOfCandidatesOfVeryDeepModels) {
  for (const int layers : {2000, 10000, ModelShape::kMostLayers})
    for (const int world : {8, 4096}) {
      PlanProblem p;
      p.model = gpt(layers, 1024, 16, 1024, 32000);
      p.machine = {find_accelerator("A100-SXM-80GB"), world, 8};
      p.global_batch = 4096;
      EXPECT_LT(search_plans(p, {}, 10).priced, 4'000'000) << layers << ' ' << world;
    }
}

/// The numbers of recomputed layers that are tried for four stages where everything fits; 0: all, or none.
std::set<int> recomputed_parts(int layers, int chunks) {
  PlanProblem p;
  p.model = gpt(layers, 1024, 16, 1024, 32000);
  p.machine = {find_accelerator("A100-SXM-80GB"), 4, 4};
  p.machine.device.memory = 1e15;
  p.global_batch = 64;
  const Fixed fixed{.tensor = 1, .pipeline = 4, .chunks = chunks, .micro_batch = 4};
  std::set<int> parts;
  for (const Plan& plan : search_plans(p, fixed, 200).plans) parts.insert(plan.candidate.recompute_layers);
  return parts;
}

// R1: only multiples of the chunks are plans, so among few numbers they must be the ones that are tried.
TEST(Search, TriesPartsOfTheChunksOfVeryDeepModels) {
  for (const int chunks : {1, 2, 4}) EXPECT_GT(recomputed_parts(1024, chunks).size(), 20U) << chunks;
  EXPECT_EQ(recomputed_parts(16384, 1), (std::set<int>{0, 512, 1024, 1536, 2048, 2560, 3072, 3584}));
}

TEST(Explain, TheFrontTradesTimeForMemory) {
  const std::vector<Plan> front = pareto_front(gpt_22b(64), {});
  ASSERT_GT(front.size(), 2u);
  for (size_t i = 1; i < front.size(); ++i) {
    EXPECT_GT(front[i].time.total() / static_cast<double>(front[i].candidate.global_batch),
              front[i - 1].time.total() / static_cast<double>(front[i - 1].candidate.global_batch));
    EXPECT_LT(front[i].memory.estimate.needed(), front[i - 1].memory.estimate.needed());
  }
}

TEST(Explain, InverseQuestionsAnswerWithWhatFitsAndNoMore) {
  const PlanProblem p = gpt_22b(16);
  const Inverse inverse = inverse_questions(p, {});
  ASSERT_GT(inverse.least_devices, 0);
  PlanProblem less = p;
  less.machine.world = inverse.least_devices;
  less.machine.local_world = std::min(8, less.machine.world);
  EXPECT_FALSE(search_plans(less, {}, 1).plans.empty());
  less.machine.world /= 2;
  less.machine.local_world = std::min(8, less.machine.world);
  EXPECT_TRUE(search_plans(less, {}, 1).plans.empty());
  EXPECT_GE(inverse.longest_sequence, p.model.seq_length);
  EXPECT_GE(inverse.most_layers, p.model.layers);
}

/// A device with room for a run's state and its step, but not for the copy of an asynchronous save. Half of
/// the copy's 12 bytes per parameter (fp32 masters and two moments) do not fit.
PlanProblem without_room_for_the_copy() {
  PlanProblem p = test::on_this_processor(512, 1);
  p.save_copy = SaveCopy::kAll;
  Candidate least{.micro_batch = 1, .recompute_layers = 4, .recompute = Recomputed::kFull};
  EXPECT_FALSE(complete(p, least));
  const double copy = 12.0 * total_parameters(p.model);
  p.machine.device.memory *= (worst_stage(p, least).estimate.needed() - copy / 2) / usable_memory(p);
  return p;
}

TEST(Search, LeavesOutTheCopyOfASaveWhereNothingFitsBesideIt) {
  PlanProblem p = without_room_for_the_copy();
  ASSERT_TRUE(search_plans(p, {}).plans.empty());
  PlanProblem needed = p;
  needed.needs_save_copy = true;
  EXPECT_TRUE(search_beside_saves(needed, {}, 20).plans.empty());
  EXPECT_EQ(needed.save_copy, SaveCopy::kAll);
  EXPECT_FALSE(search_beside_saves(p, {}, 20).plans.empty());
  EXPECT_EQ(p.save_copy, SaveCopy::kNone);
  // If the copy fits, it stays.
  p = without_room_for_the_copy();
  p.machine.device.memory *= 2;
  const SearchResult beside = search_beside_saves(p, {}, 20);
  ASSERT_FALSE(beside.plans.empty());
  EXPECT_EQ(p.save_copy, SaveCopy::kAll);
  EXPECT_GT(beside.plans.front().memory.estimate.save_copy, 0);
}

/// A model whose head needs more scratch than the closed forms say, on a device of `gigabytes`.
PlanProblem large_vocabulary(double gigabytes) {
  PlanProblem p = test::on_this_processor(50257, 1);
  p.model = test::gpt(2, 1024, 16, 2048, 50257);
  p.trained_here = true;
  p.global_batch = 0;
  p.max_global_batch = 16;
  p.machine.device.memory = gigabytes * 1e9;
  return p;
}

// Whether a plan for this machine fits is decided by what the trainer allocates, not by the closed forms of
// the search.
TEST(Search, ListsNoPlanOfThisMachineThatItsTrainerHasNoRoomFor) {
  for (const double gigabytes : {2.3, 2.819, 3.4})
    for (const SearchMode mode : {SearchMode::kBounded, SearchMode::kExhaustive}) {
      const PlanProblem p = large_vocabulary(gigabytes);
      const SearchResult found = search_plans(p, {}, 5, mode);
      EXPECT_EQ(found.plans.size(), 5u) << gigabytes;
      for (const Plan& plan : found.plans) {
        const TrainerAnswer answer = ask_trainer(p, plan.candidate);
        ASSERT_TRUE(answer.rank) << answer.refusal;
        EXPECT_LE(answer.rank->estimate.needed(), p.machine.device.memory) << gigabytes;
        EXPECT_EQ(plan.memory.estimate.needed(), answer.rank->estimate.needed());
      }
    }
}

TEST(Search, FindsThePlanOfThisMachineThatItsTrainerJustHasRoomFor) {
  PlanProblem p = test::on_this_processor(8192, 8);
  p.trained_here = true;
  Candidate least{.micro_batch = 1, .recompute = Recomputed::kFull};
  ASSERT_FALSE(complete(p, least));
  p.machine.device.memory = ask_trainer(p, least).rank->estimate.needed();
  EXPECT_FALSE(search_plans(p, {}, 1).plans.empty());
  p.machine.device.memory *= 0.8;
  const SearchResult none = search_plans(p, {}, 1);
  EXPECT_TRUE(none.plans.empty());
  ASSERT_TRUE(none.closest);
  EXPECT_EQ(none.closest->memory.estimate.context, 0);
}

// M1: no other program runs on this machine's processor, so what our trainer refuses is no plan there.
TEST(Search, ListsOnlyPlansOfThisMachineThatItsTrainerRuns) {
  PlanProblem p = test::on_this_processor(512, 8);
  p.trained_here = true;
  p.machine.world = p.machine.local_world = 4;
  for (const SearchMode mode : {SearchMode::kBounded, SearchMode::kExhaustive}) {
    const SearchResult found = search_plans(p, {}, 1000, mode);
    EXPECT_GT(found.plans.size(), 50u);
    for (const Plan& plan : found.plans) EXPECT_EQ(ask_trainer(p, plan.candidate).refusal, "");
    // The trainer shards gradients without a pipeline only (docs/distributed.md).
    const Fixed sharded{.pipeline = 2, .sharding = Sharding::kGradients};
    const SearchResult none = search_plans(p, sharded, 20, mode);
    EXPECT_TRUE(none.plans.empty());
    EXPECT_FALSE(none.closest);
    EXPECT_GT(none.rejected.at("M1"), 0);
    EXPECT_NE(none.example.at("M1").find("--sharding stage2 needs --pipeline-model-parallel-size 1"),
              std::string::npos)
        << none.example.at("M1");
  }
}

TEST(Explain, AllDevicesMayBeTheLeast) {
  PlanProblem p = test::gpt_22b(12);
  p.machine = {find_accelerator("A100-SXM-40GB"), 12, 2};
  p.model = test::gpt(60, 5040, 42, 2048, 50257);
  p.max_global_batch = 0;
  p.global_batch = 420;  // 2^2 * 3 * 5 * 7: not divisible by 8 data ranks
  ASSERT_FALSE(search_plans(p, {}, 1).plans.empty());
  const int least = inverse_questions(p, {}).least_devices;
  EXPECT_GT(least, 0);
  EXPECT_LE(least, 12);
}

// Searches for other numbers of devices leave out the copy for a save too if nothing fits with it.
TEST(Search, LeavesOutThatCopyForOtherNumbersOfDevicesToo) {
  PlanProblem p = without_room_for_the_copy();
  EXPECT_TRUE(simulate_worlds(p, {}, {1}).front().plan);
  EXPECT_EQ(inverse_questions(p, {}).least_devices, 1);
  const Scaling scaled = scaling(p, {}, {});
  ASSERT_FALSE(scaled.powers.empty());
  EXPECT_EQ(scaled.powers.front().devices, 1);
  EXPECT_FALSE(pareto_front(p, {}).empty());
  p.needs_save_copy = true;
  EXPECT_TRUE(pareto_front(p, {}).empty());
  EXPECT_FALSE(simulate_worlds(p, {}, {1}).front().plan);
  EXPECT_GT(inverse_questions(p, {}).least_devices, 1);
}

}  // namespace
}  // namespace megalith

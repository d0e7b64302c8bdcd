#include "libcore/plan/search/remedy.h"

#include <gtest/gtest.h>

#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt_22b;

TEST(Remedy, MakesTheMissedPlanFit) {
  PlanProblem p = gpt_22b(16);
  p.machine.device.memory = 34e9;
  const SearchResult r = search_plans(p, {});
  ASSERT_TRUE(r.missed);
  const auto remedy = least_change_of_plan(p, *r.missed);
  ASSERT_TRUE(remedy);
  EXPECT_GT(r.missed->memory.estimate.needed(), usable_memory(p));
  EXPECT_LE(remedy->plan.memory.estimate.needed(), usable_memory(p));
}

/// Nothing may change but what the options name.
PlanProblem with_16_bit_gradients(PlanProblem p) {
  p.software.gradient_bytes = 2;
  return p;
}

// Llama 2 70B on 16 H100: 2 bytes fewer for each of 69 billion parameters on 16 devices are 8.6 GB each.
TEST(Remedy, NamesGradientsIn16BitsWhereTheyAloneAreEnough) {
  PlanProblem p;
  p.model = test::llama(80, 8192, 64, 8, 28672, 32000);
  p.machine = {find_accelerator("H100"), 16, 8};
  p.machine.device.memory = 78e9;
  p.global_batch = 256;
  const SearchResult none = search_plans(p, {}, 1);
  ASSERT_TRUE(none.closest);
  ASSERT_FALSE(search_plans(with_16_bit_gradients(p), {}, 1).plans.empty());
  const auto remedy = least_change_of_command(p, {}, *none.closest);
  ASSERT_TRUE(remedy);
  EXPECT_EQ(remedy->options, "--grad-reduce-in-bf16");
  EXPECT_LE(remedy->plan.memory.estimate.needed(), usable_memory(p));
}

TEST(Remedy, TriesPairsWhereNoSingleChangeIsEnough) {
  PlanProblem p = gpt_22b(8);
  p.machine.device.memory = 25e9;
  const Fixed fixed{.tensor = 1, .pipeline = 1, .sharding = Sharding::kNone};
  const SearchResult none = search_plans(p, fixed, 1);
  ASSERT_TRUE(none.closest);
  const auto remedy = least_change_of_command(p, fixed, *none.closest);
  ASSERT_TRUE(remedy);
  EXPECT_LE(remedy->plan.memory.estimate.needed(), usable_memory(p));
  EXPECT_NE(remedy->options.find(" --"), std::string::npos) << remedy->options;
}

// The trainer's own words, so that megalith-pretrain and the planner name the same change.
TEST(Remedy, SaysWhatOurTrainerWouldSayOnThisMachine) {
  PlanProblem p = test::on_this_processor(8192, 8);
  p.trained_here = true;
  const Fixed fixed{.micro_batch = 8, .recompute = Recomputed::kNone};
  Candidate least{.micro_batch = 4};
  ASSERT_FALSE(complete(p, least));
  p.machine.device.memory = ask_trainer(p, least).rank->estimate.needed();
  const SearchResult none = search_plans(p, fixed, 1);
  ASSERT_TRUE(none.closest);
  const auto remedy = least_change_of_command(p, fixed, *none.closest);
  ASSERT_TRUE(remedy);
  EXPECT_EQ(remedy->options, "--micro-batch-size 4 --global-batch-size 8");
}

}  // namespace
}  // namespace megalith

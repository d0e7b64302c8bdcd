#include "libcore/plan/search/goal.h"

#include <gtest/gtest.h>

#include "libcore/plan/report/scaling_text.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt_22b;

PlanProblem gpt_22b_in_large_batches() {
  PlanProblem p = gpt_22b(64);
  p.max_global_batch = 0;
  p.global_batch = 1024;
  return p;
}

double days_with(int devices, double tokens) {
  const PlanProblem p = with_devices(gpt_22b_in_large_batches(), devices);
  const SearchResult found = search_plans(p, {}, 1);
  return found.plans.empty() ? 1e9 : tokens / found.plans.front().tokens_per_second(p) / 86400;
}

TEST(Scaling, NamesTheFewestDevicesOfADeadline) {
  constexpr double kTokens = 300e9;
  const Goal goal{.tokens = kTokens, .days = 30};
  const Scaling found = scaling(gpt_22b_in_large_batches(), {}, goal);
  ASSERT_TRUE(found.fewest);
  EXPECT_DOUBLE_EQ(found.fewest->days, days_with(found.fewest->devices, kTokens));
  EXPECT_LE(found.fewest->days, 30);
  EXPECT_EQ(found.fewest->devices % 8, 0);
  int devices = 8;
  while (devices < found.fewest->devices) {
    EXPECT_GT(days_with(devices, kTokens), 30) << devices;
    devices += 8;
  }
  EXPECT_FALSE(found.fastest);  // no budget was given
}

TEST(Scaling, ABudgetBuysTheSoonestEndThatItPays) {
  constexpr double kTokens = 300e9, kPrice = 2;
  const Goal free{.tokens = kTokens, .gpu_hour = kPrice};
  const Scaling all = scaling(gpt_22b_in_large_batches(), {}, free);
  ASSERT_GT(all.powers.size(), 3u);
  for (const Scale& scale : all.powers)
    EXPECT_NEAR(scale.cost, scale.days * 24 * scale.devices * kPrice, 1e-6 * scale.cost);
  Goal bounded = free;
  bounded.budget = all.powers[all.powers.size() / 2].cost;
  const Scaling found = scaling(gpt_22b_in_large_batches(), {}, bounded);
  ASSERT_TRUE(found.fastest);
  for (const Scale& scale : all.powers) {
    if (scale.cost > *bounded.budget) continue;
    EXPECT_GE(scale.days, found.fastest->days) << scale.devices;
  }
  EXPECT_LE(found.fastest->cost, *bounded.budget);
}

/// 13 billion parameters in batches of 96, which 512 devices cannot share evenly.
PlanProblem gpt_13b() {
  PlanProblem p = gpt_22b(8);
  p.model = test::gpt(40, 5120, 40, 2048, 32000);
  p.max_global_batch = 0;
  p.global_batch = 96;
  return p;
}

Scale with(const PlanProblem& base, const Goal& goal, int devices) {
  const PlanProblem p = with_devices(base, devices);
  const Plan plan = search_plans(p, {}, 1).plans.at(0);
  const double hours = goal.tokens / plan.tokens_per_second(p) / 3600;  // a budget may be exactly its cost
  return {devices, plan, hours / 24, hours * devices * goal.gpu_hour};
}

TEST(Scaling, GivesNoDeadlineUpAtAPowerOfTwoThatIsNoFaster) {
  Goal goal{.tokens = 3e11, .gpu_hour = 2};
  const PlanProblem p = gpt_13b();
  const Scale more = with(p, goal, 768);
  ASSERT_GT(with(p, goal, 512).days, more.days);
  goal.days = more.days;
  const Scaling found = scaling(p, {}, goal);
  ASSERT_TRUE(found.fewest);
  EXPECT_LE(found.fewest->days, *goal.days);
  EXPECT_LE(found.fewest->devices, 768);
}

TEST(Scaling, ABudgetBuysNumbersOfDevicesBetweenThePowersOfTwo) {
  Goal goal{.tokens = 3e11, .gpu_hour = 2};
  const PlanProblem p = gpt_13b();
  const Scale paid = with(p, goal, 384), dearer = with(p, goal, 512);
  ASSERT_LT(paid.cost, dearer.cost);
  ASSERT_LT(paid.days, dearer.days);
  goal.budget = dearer.cost;
  const Scaling found = scaling(p, {}, goal);
  ASSERT_TRUE(found.fastest);
  EXPECT_LE(found.fastest->days, paid.days);
  EXPECT_LE(found.fastest->cost, *goal.budget);
}

/// 2 billion parameters in batches of 240, which 80 devices share evenly and no power of two above 16 does.
PlanProblem gpt_2b_in_batches_of_fifteen() {
  PlanProblem p = gpt_22b(8);
  p.model = test::gpt(40, 2048, 16, 2048, 32000);
  p.machine.device = find_accelerator("H100");
  p.max_global_batch = 0;
  p.global_batch = 240;
  return p;
}

// No smaller number of whole machines meets the goal: the test tries every one.
TEST(Scaling, NamesTheFewestWhereMoreDevicesAreSlower) {
  const PlanProblem p = gpt_2b_in_batches_of_fifteen();
  Goal goal{.tokens = 3e11};
  ASSERT_LT(with(p, goal, 80).days, with(p, goal, 128).days);
  for (const double days : {1.62, 1.1}) {
    goal.days = days;
    const Scaling found = scaling(p, {}, goal);
    ASSERT_TRUE(found.fewest);
    EXPECT_LE(found.fewest->days, days);
    EXPECT_DOUBLE_EQ(found.fewest->days, with(p, goal, found.fewest->devices).days);
    for (int devices = 8; devices < found.fewest->devices; devices += 8) {
      const PlanProblem fewer = with_devices(p, devices);
      const SearchResult plans = search_plans(fewer, {}, 1);
      if (plans.plans.empty()) continue;
      EXPECT_GT(goal.tokens / plans.plans.at(0).tokens_per_second(fewer) / 86400, days) << devices;
    }
  }
}

TEST(Scaling, ABudgetFindsTheSoonestWhereMoreDevicesAreSlower) {
  const PlanProblem p = gpt_2b_in_batches_of_fifteen();
  Goal goal{.tokens = 3e11, .gpu_hour = 2};
  const Scale fast = with(p, goal, 240);
  goal.budget = fast.cost;
  const Scaling found = scaling(p, {}, goal);
  ASSERT_TRUE(found.fastest);
  EXPECT_LE(found.fastest->cost, *goal.budget);
  EXPECT_LE(found.fastest->days, fast.days);
}

TEST(WithDevices, FewerRanksOfAMachineShareItsMemory) {
  PlanProblem p = test::on_this_processor(512, 8);
  p.machine.world = p.machine.local_world = 4;
  p.machine.device.memory = 1e9;
  EXPECT_EQ(with_devices(p, 2).machine.device.memory, 1e9);  // each device has its own memory
  p.machine.shares_memory = true;
  EXPECT_EQ(with_devices(p, 2).machine.device.memory, 2e9);
  EXPECT_EQ(with_devices(p, 8).machine.device.memory, 1e9);  // two machines
}

// For the same total work, four ranks on one processor take about as long as a single rank that has all of
// it.
TEST(WithDevices, MoreRanksOfAProcessorAreNoMoreProcessors) {
  PlanProblem one = test::on_this_processor(8192, 64);
  one.machine.shares_processor = one.machine.shares_memory = true;
  Candidate alone{.micro_batch = 4, .sharding = Sharding::kOptimizer}, shared = alone;
  PlanProblem four = one;
  set_local_world(four.machine, 4);
  four.machine.world = 4;
  ASSERT_FALSE(complete(one, alone));
  ASSERT_FALSE(complete(four, shared));
  EXPECT_EQ(alone.microbatches, 16);
  EXPECT_EQ(shared.microbatches, 4);
  const double seconds = make_plan(one, alone).time.total();
  EXPECT_NEAR(make_plan(four, shared).time.total(), seconds, 0.1 * seconds);
  const PlanProblem again = with_devices(four, 1);
  EXPECT_DOUBLE_EQ(make_plan(again, alone).time.total(), seconds);
  EXPECT_DOUBLE_EQ(again.machine.device.memory, one.machine.device.memory);
}

TEST(Scaling, SaysThatNothingMeetsTheGoal) {
  const Goal goal{.tokens = 300e9, .gpu_hour = 2, .days = 0.001, .budget = 1};
  const PlanProblem p = gpt_22b_in_large_batches();
  const Scaling found = scaling(p, {}, goal);
  EXPECT_FALSE(found.fewest);
  EXPECT_NE(scaling_text(p, goal, found).find("no number of devices meets that"), std::string::npos);
}

}  // namespace
}  // namespace megalith

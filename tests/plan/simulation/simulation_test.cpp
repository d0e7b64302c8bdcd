#include "libcore/plan/simulation/simulation.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/dry/dry_backend.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/tensor/arena.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt;

constexpr double kFast = 1e24;  // rates so high that only other costs count

/// A machine of `world` devices whose ops and links have the given rates; the links join all devices.
PlanProblem devices(int world, double flops, double link) {
  PlanProblem p;
  p.model = gpt(8, 256, 4, 128, 512);
  p.machine = {Accelerator{.name = "imagined",
                           .half_flops = flops,
                           .float_flops = flops,
                           .memory = 1e12,
                           .memory_bandwidth = flops,
                           .link_bandwidth = link,
                           .network_bandwidth = link},
               world, world};
  p.precision = Precision::kFloat32;
  p.software = trainer_software();
  return p;
}

SimulatedStep simulated(PlanProblem p, Candidate c, int64_t global_batch) {
  p.global_batch = global_batch;
  const auto rejection = complete(p, c);
  EXPECT_FALSE(rejection) << rejection->reason;
  return simulate_step(p, c);
}

double ring(const PlanProblem& p, double bytes, int ranks) {
  return ring_seconds(bytes, ranks, group_link(p, ranks, 1));
}

// 1F1B of m microbatches over even stages takes the time of (m + stages - 1) microbatches (Narayanan et al.
// 2021). The embedding and the head, on the outer stages, are small.
TEST(Simulation, OfAPipelineTakesItsBubble) {
  const PlanProblem p = devices(4, 1e12, kFast);
  const SimulatedStep step = simulated(p, {.pipeline = 4}, 12);
  EXPECT_NEAR(step.seconds / step.work, 15.0 / 12, 0.03);
  EXPECT_NEAR(step.pipeline / (step.seconds - step.work), 1, 0.05);
  // Interleaved with two chunks the bubble is half as long.
  const SimulatedStep interleaved = simulated(p, {.pipeline = 4, .chunks = 2}, 12);
  EXPECT_NEAR(interleaved.seconds / interleaved.work, 13.5 / 12, 0.03);
}

// Messages of [128, 1, 256] fp32, by hand. Ops cost nothing, so message i + 1 comes back when i + 2 messages
// have passed in either direction: the fourth comes back after five. Then the gradient of the embedding
// table, which both stages hold, is summed.
TEST(Simulation, OfASlowPipelineIsItsMessages) {
  const PlanProblem p = devices(2, kFast, 1e6);
  const SimulatedStep step = simulated(p, {.pipeline = 2}, 4);
  const double message = 128 * 256 * 4 / group_link(p, 2, 1).bandwidth;
  EXPECT_NEAR(step.seconds / (5 * message + 2 * ring(p, 512 * 256 * 4, 2)), 1, 0.01);
}

// Gradients are fp32; embedding and head are tied.
TEST(Simulation, OfSlowDataRanksIsTheSumOfTheGradients) {
  const PlanProblem p = devices(4, kFast, 1e6);
  const SimulatedStep step = simulated(p, {}, 4);
  const double parameters = total_parameters(p.model);
  EXPECT_NEAR(step.seconds / (2 * ring(p, 4 * parameters, 4)), 1, 0.01);
  EXPECT_NEAR(step.rest() / step.seconds, 1, 0.01);
  const SimulatedStep sharded = simulated(p, {.sharding = Sharding::kOptimizer},
                                          4);  // gradients are scattered, then parameters are gathered
  EXPECT_NEAR(sharded.seconds / step.seconds, 1, 0.01);
}

// If the backward pass takes longer than the sums of the buckets, only the last bucket's sum costs time.
TEST(Simulation, HidesBucketsBehindTheBackwardPass) {
  PlanProblem p = devices(2, 1e9, 1e9);
  p.model.layers = 16;
  const SimulatedStep alone = simulated(devices(1, 1e9, 1e9), {}, 1);
  const SimulatedStep step = simulated(p, {}, 2);
  EXPECT_GT(alone.seconds, 0);
  EXPECT_LT(step.rest() / step.seconds, 0.05);
}

// Two all-reduces of [128, 1, 256] per layer and direction, plus one after the embedding and one before the
// head.
TEST(Simulation, OfSlowTensorRanksIsTheirAllReduces) {
  const PlanProblem p = devices(2, kFast, 1e6);
  const SimulatedStep step = simulated(p, {.tensor = 2}, 1);
  const double one = 2 * ring(p, 128 * 256 * 4, 2);
  EXPECT_NEAR(step.tensor / ((4 * 8 + 2) * one), 1, 0.02);
}

// A layer's keys and values of all positions, gathered twice, and their gradients summed once.
TEST(Simulation, OfSlowContextRanksIsTheirKeysAndValues) {
  const PlanProblem p = devices(2, kFast, 1e6);
  const SimulatedStep step = simulated(p, {.context = 2}, 1);
  EXPECT_NEAR(step.tensor / (3 * 8 * ring(p, 2 * 128 * 256 * 4, 2)), 1, 0.01);
}

/// The calls and bytes of each group.
std::map<std::string, std::pair<int64_t, int64_t>> traffic_of(const SimulatedStep& step) {
  std::map<std::string, std::pair<int64_t, int64_t>> groups;
  for (const GroupTraffic& one : step.traffic) groups[one.group] = {one.calls, one.bytes};
  return groups;
}

// As above; the sums of a step's figures are the world's.
TEST(Simulation, CountsTheBytesOfEachGroup) {
  const auto tensor = traffic_of(simulated(devices(2, kFast, 1e6), {.tensor = 2}, 1)).at("tensor");
  EXPECT_GE(tensor.first, 4 * 8 + 2);
  EXPECT_NEAR(static_cast<double>(tensor.second) / ((4 * 8 + 2) * 128 * 256 * 4), 1, 0.01);
  const auto pipeline = traffic_of(simulated(devices(4, kFast, 1e6), {.pipeline = 4}, 12));
  for (const char* direction : {"pipeline forward", "pipeline backward"})
    EXPECT_EQ(pipeline.at(direction), (std::pair<int64_t, int64_t>{3 * 12, 3 * 12 * 128 * 256 * 4}));
  EXPECT_TRUE(traffic_of(simulated(devices(1, kFast, 1e6), {}, 1)).empty());
}

/// All its numbers, each relative to the step's seconds.
void expect_same(const SimulatedStep& a, const SimulatedStep& b, const std::string& what) {
  const double rounding = 1e-10 * b.seconds;
  EXPECT_NEAR(a.seconds, b.seconds, rounding) << what;
  EXPECT_NEAR(a.work, b.work, rounding) << what;
  EXPECT_NEAR(a.tensor, b.tensor, rounding) << what;
  EXPECT_NEAR(a.pipeline, b.pipeline, rounding) << what;
  EXPECT_EQ(traffic_of(a), traffic_of(b)) << what;
}

// The trainer runs every microbatch, or a few periods of them of which one is repeated.
TEST(Simulation, OfManyMicrobatchesIsThatOfEach) {
  int repeated = 0;
  for (const double link : {1e6, 1e9, kFast})
    for (const Candidate& c : {Candidate{},
                               {.tensor = 2},
                               {.data = 4, .sharding = Sharding::kOptimizer},
                               {.pipeline = 2},
                               {.pipeline = 4},
                               {.pipeline = 8},
                               {.pipeline = 2, .chunks = 2},
                               {.pipeline = 2, .chunks = 4},
                               {.pipeline = 4, .chunks = 2},
                               {.tensor = 2, .pipeline = 2, .chunks = 2, .sequence = true},
                               {.pipeline = 2, .context = 2},
                               {.pipeline = 4, .data = 2, .sharding = Sharding::kOptimizer}})
      for (const int64_t microbatches : {4, 5, 20, 25, 28, 63, 64}) {
        PlanProblem p = devices(c.tensor * c.pipeline * c.context * c.data, 1e12, link);
        p.model.layers = 8;
        p.global_batch = microbatches * c.data;
        Candidate cut = c;
        if (complete(p, cut) || !ask_trainer(p, cut).refusal.empty()) continue;
        expect_same(simulate_step(p, cut), simulate_step(p, cut, Microbatches::kEach),
                    concat("link ", link, ", tp ", c.tensor, ", pp ", c.pipeline, ", cp ", c.context, ", dp ",
                           c.data, ", vp ", c.chunks, ", microbatches ", microbatches));
        ++repeated;
      }
  EXPECT_GT(repeated, 150);
}

// 1F1B of a million microbatches, whose bubble counts for nothing. All but the optimizer's work grows with
// them.
TEST(Simulation, OfAMillionMicrobatchesIsTheirWork) {
  const PlanProblem p = devices(4, 1e12, kFast);
  const SimulatedStep one = simulated(p, {.pipeline = 4}, 100), two = simulated(p, {.pipeline = 4}, 200);
  const SimulatedStep million = simulated(p, {.pipeline = 4}, 1'000'000);
  const double work = one.work + 9999 * (two.work - one.work);
  EXPECT_NEAR(million.work / work, 1, 1e-9);
  EXPECT_NEAR(million.seconds / million.work, 1, 1e-4);
}

TEST(Simulation, RepeatsItself) {
  const PlanProblem p = devices(16, 1e12, 1e9);
  const Candidate c{.tensor = 2, .pipeline = 4, .sequence = true, .sharding = Sharding::kOptimizer};
  const SimulatedStep once = simulated(p, c, 16), again = simulated(p, c, 16);
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_EQ(once.pipeline, again.pipeline);
}

// The closed forms price the same layers on the same device in another way than the simulation.
TEST(Simulation, IsNearTheClosedFormsUpToManyDevices) {
  PlanProblem p = test::gpt_22b(64);
  p.max_global_batch = 0;
  p.global_batch = 2048;
  const std::vector<SimulatedWorld> worlds = simulate_worlds(p, {.tensor = 8}, {64, 1024, 16384});
  ASSERT_EQ(worlds.size(), 3U);
  for (const SimulatedWorld& world : worlds) {
    ASSERT_TRUE(world.plan) << world.reason;
    EXPECT_NEAR(world.step.seconds / world.plan->time.total(), 1, 0.35) << world.devices;
  }
}

TEST(Simulation, RefusesWhatTheTrainerDoesNotRun) {
  try {
    simulated(devices(2, 1e12, 1e9), {.sharding = Sharding::kParameters}, 2);
    ADD_FAILURE() << "simulated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("ZeRO-3"), std::string::npos) << error.what();
  }
}

// 256 stages would run 5 * 256 microbatches of 256 layers and hold 8192 tokens of each, 12 bytes a token.
TEST(Simulation, RefusesWhatTakesTooLong) {
  PlanProblem p = devices(256, 1e12, 1e12);
  p.model = gpt(256, 256, 4, 8192, 512);
  p.global_batch = 4096;
  const Fixed fixed{.tensor = 1, .pipeline = 256, .chunks = 1, .micro_batch = 1};
  const std::vector<SimulatedWorld> worlds = simulate_worlds(p, fixed, {256});
  EXPECT_FALSE(worlds.front().plan);
  EXPECT_EQ(worlds.front().reason,
            "a simulation of 256 stages would run 327680 layers and hold 30.00 GiB of samples; at most "
            "250000 and 256.00 MiB are simulated; ask for fewer stages (--pipeline-model-parallel-size)");
  Candidate c{.pipeline = 256};
  ASSERT_FALSE(complete(p, c));
  EXPECT_THROW(simulate_step(p, c), Error);
}

TEST(SimulatedWorlds, AreNumbersOfDevices) {
  EXPECT_EQ(simulated_worlds("64, 1024,16384"), (std::vector<int>{64, 1024, 16384}));
  for (const char* wrong : {"", "64,", "0", "x", "64;128", "2000000"})
    EXPECT_THROW(simulated_worlds(wrong), Error) << wrong;
}

// ---- the backend's clocks

TEST(TimedBackend, MovesTheClockOfTheStreamThatWorks) {
  const auto backend =
      make_timed_backend([](std::string_view op, const Cost&) { return op == "activate" ? 3.0 : 0.5; });
  Stream compute = backend->make_stream(), queue = backend->make_queue_stream();
  Arena arena = Arena::counting("test");
  const View x = arena.make(DType::kF32, {8}, "x");
  run(compute, Activate{.y = x, .x = x});
  queue.fill(x, 0);
  EXPECT_EQ(stream_clock(compute), 3.0);
  EXPECT_EQ(stream_clock(queue), 0.5);
  queue.wait(compute.record());
  compute.fill(x, 0);
  EXPECT_EQ(stream_clock(queue), 3.0);
  EXPECT_EQ(stream_clock(compute), 3.5);
  compute.wait(queue.record());  // waiting for an earlier time does not change the clock
  EXPECT_EQ(stream_clock(compute), 3.5);
  const auto plain = make_dry_backend();
  EXPECT_THROW(stream_clock(plain->make_stream()), Error);
}

}  // namespace
}  // namespace megalith

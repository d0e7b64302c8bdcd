#include "libcore/plan/price/time_model.h"

#include <random>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/shape/model_options.h"
#include "libcore/plan/shape/parameter_count.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

/// Draws random problems and partitions, the same ones in every run of the test.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  template <class T>
  T of(std::initializer_list<T> choices) {
    return std::data(choices)[random_() % choices.size()];
  }
  bool coin() { return random_() % 2 == 0; }

  /// Draws a problem for any generation of devices. Its layers may be so small that they wait for the host,
  /// or so large that the device limits them.
  PlanProblem problem() {
    PlanProblem p;
    const int heads = of({8, 16, 32}), hidden = heads * of({64, 128});
    const int layers = of({8, 12, 24, 30, 31}), groups = of({1, 4}), sequence = of({512, 1024, 4096});
    p.model = coin() ? test::gpt(layers, hidden, heads, sequence, 32000)
                     : test::llama(layers, hidden, heads, heads / groups, hidden * 3, 32000);
    p.model.seq_length = p.model.max_positions = sequence;
    if (random_() % 4 == 0) add_experts(p.model);
    p.machine = {find_accelerator(of({"b200", "h100", "a100-80", "V100-SXM2-32GB"})), of({8, 16, 64}), 8};
    p.precision = p.machine.device.fp8_flops > 0 && coin() ? Precision::kFp8 : Precision::kHalf;
    p.software.attention = of({AttentionKernel::kFused, AttentionKernel::kFlash2, AttentionKernel::kTorch});
    p.software.overlap_tensor = coin();
    p.software.overlap_exchange = p.model.has_experts() && coin();
    p.global_batch = of({16, 64, 256});
    return p;
  }
  /// Draws a partition, which may be illegal.
  Candidate cut(const PlanProblem& p) {
    Candidate c{.tensor = of({1, 2, 4, 8}), .pipeline = of({1, 2, 4}), .context = of({1, 1, 2})};
    c.chunks = of({1, 1, 2, 3});
    c.micro_batch = of({1, 2, 8});
    c.sequence = c.tensor > 1 && (p.model.has_experts() || coin());
    c.expert = p.model.has_experts() ? of({1, 2, 8}) : 1;
    c.sharding = of({Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients, Sharding::kParameters});
    c.recompute = of({Recomputed::kNone, Recomputed::kAttention, Recomputed::kNormAct, Recomputed::kProducts,
                      Recomputed::kFull});
    if (c.recompute == Recomputed::kFull) c.recompute_layers = of({0, 1, 2});
    return c;
  }

 private:
  static void add_experts(ModelShape& m) {
    m.experts = 8;
    m.router_topk = 2;
    m.linear_bias = false;
    m.finish();
  }

  std::mt19937 random_;
};

PlanProblem with_rate(PlanProblem p, double Accelerator::*rate, double factor) {
  Accelerator& d = p.machine.device;
  d.*rate *= factor;
  if (rate != &Accelerator::half_flops) return p;
  for (double Accelerator::*with :
       {&Accelerator::float_flops, &Accelerator::fp8_flops, &Accelerator::fp4_flops, &Accelerator::watts})
    d.*with *= factor;
  return p;
}

/// Describes the case in a test's failure message.
std::string words(const PlanProblem& p, const Candidate& c) {
  return concat(p.machine.world, " x ", p.machine.device.name, ", ", model_options(p.model, false), ' ',
                launch_options(p, c));
}

// A device that is faster in one respect never makes a step slower: not if layers wait for the host, not if
// products no longer hide an exchange, and not if another stage becomes the slowest.
TEST(StepTime, FallsWithEachRateOfAnyLayout) {
  Draw draw(23);
  for (int looked_at = 0; looked_at < 20000;) {
    const PlanProblem p = draw.problem();
    Candidate c = draw.cut(p);
    if (complete(p, c)) continue;
    ++looked_at;
    constexpr double kRounding = 1 + 1e-12;
    const double seconds = kRounding * step_time(p, c).total();
    for (double Accelerator::*rate : {&Accelerator::half_flops, &Accelerator::memory_bandwidth,
                                      &Accelerator::link_bandwidth, &Accelerator::network_bandwidth})
      for (const double factor : {1.1, 2.0})
        ASSERT_LE(step_time(with_rate(p, rate, factor), c).total(), seconds) << factor << ' ' << words(p, c);
  }
}

/// A partition whose layers wait for the host.
Candidate held_up_by_the_host(const PlanProblem& p) {
  Candidate c{.tensor = 8, .micro_batch = 1, .sequence = true};
  EXPECT_FALSE(complete(p, c));
  return c;
}

// 12 layers of 4096 with one sequence of 1024 tokens on eight B200: the host needs longer to start a layer's
// kernels than the device needs for its work and exchange.
TEST(StepTime, OfLayersThatTheHostHoldsUpHasTheirExchangeInIt) {
  PlanProblem p;
  p.model = test::gpt(12, 4096, 32, 1024, 32000);
  p.machine = {find_accelerator("b200"), 8, 8};
  p.software.overlap_tensor = true;
  p.global_batch = 4;
  const StepTime before = step_time(p, held_up_by_the_host(p));
  // Around the embedding and the head the host holds nothing up: a gather and a scatter of [1024, 4096] each,
  // in four microbatches.
  const auto ends = [&] { return 4 * 4 * ring_seconds(2.0 * 1024 * 4096, 8, group_link(p, 8, 1)); };
  const double before_ends = ends();
  p = with_rate(p, &Accelerator::link_bandwidth, 0.8);
  const StepTime after = step_time(p, held_up_by_the_host(p));
  EXPECT_GT(after.tensor_comm, 1.01 * before.tensor_comm);
  EXPECT_NEAR(after.compute + after.tensor_comm - ends(), before.compute + before.tensor_comm - before_ends,
              1e-9);
}

// The case before: with a graph the host starts nothing, so a layer takes what the device needs. Where the
// device is the slower one, little changes.
TEST(StepTime, OfGraphsHasNoWaitForTheHost) {
  PlanProblem p;
  p.model = test::gpt(12, 4096, 32, 1024, 32000);
  p.machine = {find_accelerator("b200"), 8, 8};
  p.global_batch = 4;
  const Candidate c = held_up_by_the_host(p);
  PlanProblem replayed = p, idle = p;
  replayed.software.cuda_graphs = true;
  Coefficients no_host = fitted_coefficients();
  no_host.host_launch = 0;
  idle.coefficients = &no_host;
  EXPECT_LT(step_time(replayed, c).total(), 0.7 * step_time(p, c).total());
  EXPECT_NEAR(step_time(replayed, c).total() / step_time(idle, c).total(), 1, 1e-12);
  PlanProblem large = test::gpt_22b(8);
  large.global_batch = 8;
  Candidate busy{.tensor = 8, .micro_batch = 4};
  ASSERT_FALSE(complete(large, busy));
  const double before = step_time(large, busy).total();
  large.software.cuda_graphs = true;
  EXPECT_LE(step_time(large, busy).total(), before);
  EXPECT_GT(step_time(large, busy).total(), 0.94 * before);
}

/// The step and the memory of a layout where the program gathers parameters once, or for every microbatch.
std::pair<double, double> gathered(const PlanProblem& problem, const Candidate& c, bool once) {
  PlanProblem p = problem;
  p.software.pipelines_gather_once = once;
  return {step_time(p, c).total(), worst_stage(p, c).estimate.needed()};
}

// Kept parameters and gradients: 2 + 4 bytes of each parameter of a stage, in the place of an eighth of them.
TEST(StepTime, OfFsdpInAPipelineGathersOnce) {
  PlanProblem p = test::gpt_22b(64);
  p.global_batch = 512;
  Candidate c{.tensor = 2, .pipeline = 4, .micro_batch = 4, .sharding = Sharding::kParameters};
  ASSERT_FALSE(complete(p, c));
  const auto [once_seconds, once_bytes] = gathered(p, c, true);
  const auto [always_seconds, always_bytes] = gathered(p, c, false);
  EXPECT_LT(once_seconds, always_seconds);
  const double of_stage = total_parameters(p.model) / (c.tensor * c.pipeline);
  EXPECT_NEAR((once_bytes - always_bytes) / (6 * of_stage * 7 / 8), 1, 0.25);
  c.pipeline = 1;
  ASSERT_FALSE(complete(p, c));
  EXPECT_EQ(gathered(p, c, true), gathered(p, c, false));
}

// The host's time to save and restore a recomputed layer counts in the pass that recomputes the layer.
TEST(StepTime, OfRecomputedLayersIsThatOfTheLayersThatRunAgain) {
  PlanProblem p = test::gpt_22b(8);
  p.global_batch = 8;
  Candidate c{.tensor = 8, .recompute = Recomputed::kFull};
  ASSERT_FALSE(complete(p, c));
  const double all = step_time(p, c).recompute;
  for (const int layers : {1, 12, 47}) {
    c.recompute_layers = layers;
    EXPECT_NEAR(step_time(p, c).recompute, all * layers / 48, 1e-9 * all);
  }
}

// What no fit has seen may be further off (docs/planner.md, "How far off").
TEST(Interval, IsWiderWhereNoRunWasFitted) {
  const auto of = [](const char* device, const char* software) {
    PlanProblem p = test::gpt_22b(64);
    p.machine.device = find_accelerator(device);
    p.software.code_base = software;
    return p;
  };
  const Coefficients& k = fitted_coefficients();
  const auto expect_known = [&](const PlanProblem& p) {
    EXPECT_NEAR(interval(p, 1).high, 1 + k.spread, 1e-12);
    EXPECT_NEAR(interval(p, 1).low, 1 / (1 + k.spread), 1e-12);
  };
  const auto expect_unseen = [&](const PlanProblem& p) {
    EXPECT_NEAR(interval(p, 1).high, 1 + k.slower_spread, 1e-12);
    EXPECT_NEAR(interval(p, 1).low, 1 / (1 + k.faster_spread), 1e-12);
  };
  expect_known(of("h100", "megatron"));
  expect_known(of("a100-80", "torchtitan"));
  expect_unseen(of("910b", "megatron"));
  expect_unseen(of("h100", "llmq"));
  EXPECT_GT(k.faster_spread, k.spread);
  EXPECT_GT(k.slower_spread, k.faster_spread);  // what nobody has seen is rather slower than predicted
  PlanProblem adapted = test::gpt_22b(64);
  adapted.tuning = {.finetunes = true, .lora_rank = 8};
  expect_unseen(adapted);
  adapted.measured = true;  // by runs without adapters
  expect_unseen(adapted);
  PlanProblem measured = of("910b", "megatron");
  measured.measured = true;
  expect_known(measured);
}

// docs/planner.md: 39 % to each side.
TEST(Interval, OfAMixtureThatNobodyHasSeenIsAsWideAsThatOfOthers) {
  PlanProblem p = test::mixtral(64);
  p.machine.device = find_accelerator("910b");
  EXPECT_NEAR(interval(p, 1).high, 1.39, 0.005);
  EXPECT_NEAR(interval(p, 1).low, 1 / 1.39, 0.005);
}

// DeepSeek-V3 (arXiv 2412.19437), table 2, for 16 stages whose backward pass takes twice the forward pass: 7
// * 2 forward passes are left of 15 * 3, parameters and gradients are there twice.
TEST(StepTime, OfDualPipeHasTheBubbleThatItsAuthorsState) {
  PlanProblem p = test::gpt_22b(128);
  p.global_batch = 256;
  Candidate c{.tensor = 8, .pipeline = 16};
  ASSERT_FALSE(complete(p, c));
  const double plain = step_time(p, c).bubble;
  const MemoryEstimate before = memory_estimate(p, c, 4);
  p.software.schedule = Schedule::kDualPipe;
  ASSERT_FALSE(complete(p, c));
  EXPECT_NEAR(step_time(p, c).bubble / plain, 7.0 * 2 / (15 * 3), 1e-9);
  EXPECT_EQ(memory_estimate(p, c, 4).parameters, 2 * before.parameters);
}

// The two ranks that have a copy of a stage share the state of the optimizer only where it is sharded.
TEST(StepTime, OfDualPipeSharesTheStateOfBothCopies) {
  PlanProblem p = test::gpt_22b(256);
  p.global_batch = 256;
  for (const auto& [sharding, times] : {std::pair(Sharding::kOptimizer, 1), {Sharding::kNone, 2}}) {
    Candidate c{.tensor = 8, .pipeline = 16, .sharding = sharding};
    p.software.schedule = Schedule::kOneForwardOneBackward;
    ASSERT_FALSE(complete(p, c));
    const double before = memory_estimate(p, c, 4).optimizer;
    p.software.schedule = Schedule::kDualPipe;
    EXPECT_EQ(memory_estimate(p, c, 4).optimizer, times * before);
  }
}

// By hand: of 8 MB four ranks read 8 MB and write 2 MB, and copy 2 MB, which is read and written.
TEST(TimeModel, AddsWhatSumsInRankOrderTake) {
  PlanProblem p = test::gpt_22b(4);
  const double rate = p.coefficients->memory_rate * p.machine.device.memory_bandwidth;
  EXPECT_EQ(ordered_sum_seconds(p, 8e6, 4), 0);
  p.rank_order = true;
  EXPECT_DOUBLE_EQ(ordered_sum_seconds(p, 8e6, 4), 14e6 / rate);
  EXPECT_EQ(ordered_sum_seconds(p, 8e6, 1), 0);
  PlanProblem here = test::on_this_processor(512, 4);
  here.rank_order = true;
  EXPECT_EQ(ordered_sum_seconds(here, 8e6, 4), 0);
  for (const Candidate& layout :
       {Candidate{.tensor = 4}, Candidate{.tensor = 4, .sequence = true}, Candidate{.data = 4},
        Candidate{.data = 4, .sharding = Sharding::kOptimizer}, Candidate{.context = 4}}) {
    p.global_batch = 4;
    p.max_global_batch = 0;
    Candidate c = layout;
    ASSERT_FALSE(complete(p, c));
    const auto seconds = [&](bool in_rank_order) {
      p.rank_order = in_rank_order;
      return step_time(p, c).total();
    };
    EXPECT_GT(seconds(true), seconds(false));
  }
}

}  // namespace
}  // namespace megalith

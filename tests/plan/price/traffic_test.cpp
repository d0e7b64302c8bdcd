// What ranks exchange, in closed form, beside what a dry run of the trainer counts and what follows by hand.
#include "libcore/plan/price/traffic.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/plan/simulation/simulation.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

/// Calls and bytes, by group.
using Groups = std::map<std::string, std::pair<int64_t, int64_t>>;

Groups by_group(const std::vector<GroupTraffic>& traffic) {
  Groups groups;
  for (const GroupTraffic& one : traffic) groups[one.group] = {one.calls, one.bytes};
  return groups;
}

struct Named {
  const char* name;
  PlanProblem problem;
};

/// A small GPT on processors in fp32, one with tables of 30,000 and a LLaMA on GPUs in 16 bits, the latter
/// two with more parameters than a bucket holds, and the LLaMA with OLMo 2's norms. The exchanges of tensor
/// ranks of the wide one are cut in pieces. One has another number of buckets. The last two add in rank
/// order.
std::vector<Named> models() {
  PlanProblem small = test::on_this_processor(515, 1);
  PlanProblem gpt = test::gpt_22b(1);
  gpt.model = test::gpt(8, 1024, 16, 512, 30001);
  PlanProblem llama = gpt;
  llama.model = test::llama(8, 1024, 16, 8, 2816, 30001);
  PlanProblem olmo3 = llama;
  olmo3.model.qk_layernorm = olmo3.model.qk_norm_all_heads = true;
  olmo3.model.norm_placement = NormPlacement::kAfter;
  PlanProblem wide = gpt;
  wide.model = test::gpt(8, 4096, 16, 2048, 30001);
  PlanProblem ordered = llama, ordered_wide = wide;
  ordered.rank_order = ordered_wide.rank_order = true;
  PlanProblem buckets = gpt;
  buckets.bucket_count = 3;
  return {
      {"small", small},     {"gpt", gpt},   {"llama", llama},     {"norms after, and over all heads", olmo3},
      {"buckets", buckets}, {"wide", wide}, {"ordered", ordered}, {"ordered wide", ordered_wide}};
}

std::vector<Candidate> layouts() {
  constexpr Sharding kZero1 = Sharding::kOptimizer, kZero2 = Sharding::kGradients;
  return {{.data = 2},
          {.data = 8},
          {.data = 2, .sharding = kZero1},
          {.data = 8, .sharding = kZero1},
          {.data = 2, .sharding = kZero2},
          {.data = 8, .sharding = kZero2},
          {.tensor = 2},
          {.tensor = 8},
          {.tensor = 2, .sequence = true},
          {.tensor = 8, .sequence = true},
          {.pipeline = 2},
          {.pipeline = 8},
          {.pipeline = 2, .chunks = 2},
          {.pipeline = 2, .chunks = 4},
          {.pipeline = 4, .chunks = 2},
          {.context = 2},
          {.context = 4},
          {.context = 2, .sharding = kZero1},
          {.context = 2, .sharding = kZero2},
          {.tensor = 2, .pipeline = 2, .data = 2},
          {.tensor = 2, .pipeline = 2, .context = 2, .data = 2, .sequence = true, .sharding = kZero1},
          {.tensor = 2, .data = 2, .sequence = true, .sharding = kZero2},
          {.tensor = 4, .pipeline = 4, .chunks = 2, .sequence = true},
          {.pipeline = 2, .context = 2, .chunks = 2, .sharding = kZero1}};
}

std::string text_of(const Candidate& c) {
  return concat("tp ", c.tensor, c.sequence ? " sp" : "", ", pp ", c.pipeline, " x ", c.chunks, ", cp ",
                c.context, ", dp ", c.data, ", zero ", static_cast<int>(c.sharding), ", micro ",
                c.micro_batch, ", recompute ", static_cast<int>(c.recompute), ' ', c.recompute_layers,
                ", microbatches ", c.microbatches);
}

/// The layouts, each with several micro-batches and each kind of recomputation, that the trainer runs on a
/// device with so much memory.
template <class Visit>
void each_run(const PlanProblem& base, const Visit& visit) {
  for (const Candidate& layout : layouts())
    for (const auto& [recompute, layers] : {std::pair{Recomputed::kNone, 0},
                                            {Recomputed::kAttention, 0},
                                            {Recomputed::kFull, 0},
                                            {Recomputed::kFull, 2}})
      for (const int micro : {1, 2}) {
        Candidate c = layout;
        c.recompute = recompute;
        c.recompute_layers = layers;
        c.micro_batch = micro;
        PlanProblem p = base;
        p.machine.world = p.machine.local_world = c.tensor * c.pipeline * c.context * c.data;
        p.global_batch = int64_t{8} * micro * c.data;
        p.max_global_batch = 0;
        if (complete(p, c) || !ask_trainer(p, c).refusal.empty()) continue;
        visit(p, c);
      }
}

// Calls agree exactly. Bytes differ by what aligning the parameters in memory adds.
TEST(StepTraffic, IsThatOfADryRun) {
  constexpr double kOnePerCent = 0.01;
  for (const Named& model : models()) {
    int runs = 0;
    each_run(model.problem, [&](const PlanProblem& p, const Candidate& c) {
      SCOPED_TRACE(concat(model.name, ": ", text_of(c)));
      const Groups counted = by_group(simulate_step(p, c).traffic), formed = by_group(step_traffic(p, c));
      ++runs;
      for (const auto& [group, count] : counted) {
        const auto form = formed.find(group);
        ASSERT_NE(form, formed.end()) << group;
        EXPECT_EQ(form->second.first, count.first) << group;
        EXPECT_NEAR(static_cast<double>(form->second.second) / static_cast<double>(count.second), 1,
                    kOnePerCent)
            << group << ' ' << form->second.second << ' ' << count.second;
      }
      EXPECT_EQ(formed.size(), counted.size());
    });
    EXPECT_GT(runs, 100) << model.name;
  }
}

// By hand: 4 microbatches of [256, 1, 256] fp32 through 4 layers with two blocks of two passes, the embedding
// and the head; the losses of 256 rows, three figures each.
TEST(StepTraffic, OfTensorRanksIsTheirHiddenStates) {
  PlanProblem p = test::on_this_processor(512, 4);
  p.machine.world = p.machine.local_world = 2;
  Candidate c{.tensor = 2};
  ASSERT_FALSE(complete(p, c));
  const int64_t hidden = 256 * 256 * 4, losses = 3 * 256 * 4;
  EXPECT_EQ(by_group(step_traffic(p, c)).at("tensor"),
            (std::pair<int64_t, int64_t>{4 * (4 * 4 + 2 + 3), 4 * ((4 * 4 + 2) * hidden + losses)}));
}

// By hand: [2048, 1, 4096] in 16 bits are 16 MiB, of which two ranks exchange 4 MiB at a time. All exchanges
// are cut but those of the inputs that a backward pass gathers again, of the embedding's gradient, and the
// three of the losses. With sequence parallelism a cut makes a call for each rank.
TEST(StepTraffic, OfTensorRanksOnGpusIsInPieces) {
  PlanProblem p = test::gpt_22b(2);
  p.model = test::gpt(8, 4096, 16, 2048, 30001);
  p.global_batch = 1;
  p.max_global_batch = 0;
  struct Case {
    bool sequence;
    int layer, ends;  // calls
  };
  for (const auto& [sequence, layer, ends] :
       {Case{false, 4 * (2 + 2), 4 * (1 + 1)}, {true, 2 * (4 + 4) + 2, 2 * (1 + 2) + 1}}) {
    Candidate c{.tensor = 2, .sequence = sequence};
    ASSERT_FALSE(complete(p, c));
    const int64_t norms = sequence ? (2 * 8 + 1) * 2 : 0;
    const auto [calls, bytes] = by_group(step_traffic(p, c)).at("tensor");
    EXPECT_EQ(calls, 8 * layer + ends + 3 + norms) << sequence;
    EXPECT_EQ(bytes / (int64_t{16} << 20), 8 * (sequence ? 10 : 4) + 2 * (sequence ? 2 : 1)) << sequence;
  }
}

// By hand: fp32 gradients of all parameters, in one bucket and that of the tied table.
TEST(StepTraffic, OfDataRanksIsTheirGradients) {
  PlanProblem p = test::on_this_processor(512, 4);
  p.machine.world = p.machine.local_world = 2;
  Candidate c{.data = 2};
  ASSERT_FALSE(complete(p, c));
  const int64_t block = 12 * 256 * 256 + 13 * 256, parameters = 4 * block + (512 + 256 + 2) * 256;
  const Groups groups = by_group(step_traffic(p, c));
  EXPECT_EQ(groups.at("data"), (std::pair<int64_t, int64_t>{2, 4 * parameters}));
  EXPECT_EQ(groups.at("world"), (std::pair<int64_t, int64_t>{1, 3 * 8}));
  EXPECT_EQ(groups.size(), 2);
}

// By hand. Of a tensor for 3 ranks the first sends two thirds, in two messages, and then its sum to the two
// others. Of the three figures it adds one. Two ranks add two and one of them.
TEST(StepTraffic, InRankOrderIsMessages) {
  PlanProblem p = test::gpt_22b(3);
  p.model = test::gpt(4, 768, 12, 256, 512);
  p.rank_order = true;
  p.global_batch = 6;
  p.max_global_batch = 0;
  const int64_t block = 12 * 768 * 768 + 13 * 768, parameters = 4 * block + (512 + 256 + 2) * 768;
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer}) {
    Candidate c{.data = 3, .sharding = sharding};
    ASSERT_FALSE(complete(p, c));
    const Groups groups = by_group(step_traffic(p, c));
    const int64_t third = 4 * parameters / 3, gather = 2 * parameters;
    EXPECT_EQ(groups.at("data"), sharding == Sharding::kNone
                                     ? (std::pair<int64_t, int64_t>{2 * 4, 4 * third})
                                     : (std::pair<int64_t, int64_t>{2 * (2 + 1), 2 * third + gather}));
    EXPECT_EQ(groups.at("world"), (std::pair<int64_t, int64_t>{4, (2 + 2) * 8}));
  }
  p.machine.world = p.machine.local_world = 2;
  Candidate two{.data = 2};
  ASSERT_FALSE(complete(p, two));
  EXPECT_EQ(by_group(step_traffic(p, two)).at("world"), (std::pair<int64_t, int64_t>{2, (1 + 2) * 8}));
  // Ranks on a processor add in rank order by other means.
  PlanProblem here = test::on_this_processor(512, 4);
  here.machine.world = here.machine.local_world = 2;
  here.rank_order = true;
  ASSERT_FALSE(complete(here, two));
  EXPECT_EQ(by_group(step_traffic(here, two)).at("world"), (std::pair<int64_t, int64_t>{1, 3 * 8}));
}

}  // namespace
}  // namespace megalith

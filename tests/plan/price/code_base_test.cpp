#include "libcore/plan/price/code_base.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "bench/plan_rows/run_rows.h"
#include "libcore/base/text.h"
#include "libcore/plan/request/plan_request.h"
#include "libcore/plan/search/search.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

TEST(CodeBase, HasAnotherNameForEachAndASource) {
  std::vector<std::string> names = code_base_names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const CodeBase& one : code_bases()) {
    EXPECT_NE(std::string(one.source), "") << one.name;
    EXPECT_EQ(default_software(one, true).code_base, one.name);
    EXPECT_EQ(&code_base(one.name), &one);
  }
}

TEST(CodeBase, KnowsTheFeaturesOfTables) {
  Software software;
  for (const std::string& word : feature_words()) EXPECT_TRUE(add_feature(software, word)) << word;
  EXPECT_TRUE(software.compiled && software.overlap_tensor && software.adam_8bit);
  EXPECT_EQ(software.schedule, Schedule::kVMin);
  EXPECT_FALSE(add_feature(software, "eager"));
}

// docs/planner.md: of 40 layers 21 are on the first of two stages and 19 on the second.
TEST(CodeBase, ScalingDividesItsModules) {
  EXPECT_EQ(cut_of_modules(40, 2), (std::vector<int>{21, 19}));
  EXPECT_EQ(cut_of_modules(40, 1), std::vector<int>{});
  EXPECT_EQ(cut_of_modules(2, 2), std::vector<int>{});
  for (const int pipeline : {2, 3, 4, 8}) {
    const std::vector<int> cut = cut_of_modules(60, pipeline);
    EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), 0), 60);
  }
}

// InternEvo's partition_uniform(): of 32 layers on six stages the last two have six.
TEST(CodeBase, InternEvoGivesTheLastStagesMore) {
  EXPECT_EQ(cut_late(32, 6), (std::vector<int>{5, 5, 5, 5, 6, 6}));
  EXPECT_EQ(cut_late(32, 3), (std::vector<int>{10, 11, 11}));
  EXPECT_EQ(cut_late(32, 4), std::vector<int>{});
  EXPECT_EQ(cut_late(32, 1), std::vector<int>{});
}

// nanotron's rule by hand, for GPTs whose head has as many parameters as four layers: of 16 layers and a head
// a half is 10 layers, which the eleventh exceeds; quarters end at 5, 10 and 15, which the sixth, the
// eleventh and the sixteenth exceed, so that the last stage has the head alone.
TEST(CodeBase, NanotronCutsByTheCostOfLayersAndHead) {
  ModelShape m = test::gpt(16, 2048, 32, 4096, 131072);
  EXPECT_EQ(cut_by_cost(m, 2), (std::vector<int>{11, 5}));
  EXPECT_EQ(cut_by_cost(m, 4), std::vector<int>{});
  EXPECT_EQ(cut_by_cost(m, 1), std::vector<int>{});
  m.vocab_size = 0;
  EXPECT_EQ(cut_by_cost(m, 2), (std::vector<int>{9, 7}));
}

/// A plan of one way to divide the work, and the problem it is of.
struct Priced {
  PlanProblem problem;
  Candidate candidate;
};

PlanRequest request_of(const std::vector<std::string>& words) {
  PlanCommand command;
  Options options("autoplan", "");
  command.add_to(options);
  options.read(words);
  command.check(options);
  return plan_request(command);
}

/// What a command with every choice fixed is planned as; nothing if no layout is legal.
std::optional<Priced> by_command(const std::vector<std::string>& words) {
  const PlanRequest request = request_of(words);
  const SearchResult found = search_plans(request.problem, request.fixed, 2);
  EXPECT_LE(found.candidates, 1) << join(words, " ");
  const std::optional<Plan> plan = found.plans.empty() ? found.closest : found.plans.front();
  return plan ? std::optional(Priced{request.problem, plan->candidate}) : std::nullopt;
}

const char* const kFrameworks[] = {"Megatron-DeepSpeed", "AA-Scaling",
                                   "InternEvo",          "llm-foundry/FSDP",
                                   "Megatron-LM",        "NeMo/Megatron-Core",
                                   "Megatron-Bridge",    "Primus/Megatron",
                                   "torchtitan",         "fsdp",
                                   "nanotron",           "llmq",
                                   "megatron-2020",      "megalith",
                                   "Megatron-LM 0.14",   "ModelLink"};

/// Rows of every code base, on devices of every kind, with layouts of every kind.
std::vector<RunRow> rows() {
  const RunRow kModels[] = {{{"arch", "gpt"}, {"ffn", "16384"}, {"kv_heads", "32"}, {"precision", "fp16"}},
                            {{"arch", "llama"}, {"ffn", "11008"}, {"kv_heads", "8"}, {"precision", "bf16"}}};
  const RunRow kLayouts[] = {
      {{"gpus", "8"}, {"tp", "2"}, {"pp", "2"}, {"sp", "y"}, {"dist_opt", "y"}, {"recompute", "selective"}},
      {{"gpus", "4"}, {"dist_opt", "zero3"}, {"recompute", "full"}},
      {{"gpus", "64"}, {"tp", "8"}, {"pp", "4"}, {"vpp", "2"}, {"sp", "y"}, {"dist_opt", "n"}},
      {{"gpus", "16"}, {"tp", "4"}, {"cp", "2"}, {"dist_opt", "zero2"}, {"recompute", "norm,act"}},
      {{"gpus", "12"}, {"pp", "3"}, {"dist_opt", "y"}, {"recompute", "full"}},
      {{"gpus", "144"}, {"pp", "2"}, {"dist_opt", "y"}, {"nic_gbps", "100"}}};
  const RunRow kDevices[] = {
      {{"gpu", "A100-80GB"}, {"attn_kernel", "flash_attention2 + RMS kernel"}},
      {{"gpu", "A100-40GB"}, {"attn_kernel", "unfused/scaled-softmax"}},
      {{"gpu", "H100-SXM-80GB"}, {"attn_kernel", "TE fused"}, {"features", "ce_fusion"}},
      {{"gpu", "GB200"}, {"attn_kernel", "TE fused"}, {"node_gpus", "72"}}};
  std::vector<RunRow> out;
  for (const char* framework : kFrameworks)
    for (const RunRow& model : kModels)
      for (const RunRow& layout : kLayouts)
        for (const RunRow& device : kDevices) {
          RunRow row = {{"framework", framework}, {"layers", "32"},       {"hidden", "4096"},
                        {"heads", "32"},          {"vocab", "32000"},     {"seq", "2048"},
                        {"micro_batch", "1"},     {"global_batch", "288"}};
          for (const RunRow& part : {model, layout, device}) row.insert(part.begin(), part.end());
          const bool interleaves = row.contains("vpp"),
                     never = row["framework"] == "AA-Scaling" || row["framework"] == "nanotron";
          if (!interleaves || !never) out.push_back(row);  // neither has interleaved pipelines
        }
  return out;
}

/// Sums over stages may be made in another order.
void expect_equal(double told, double wanted, const std::vector<std::string>& words) {
  EXPECT_NEAR(told / wanted, 1, 1e-12) << join(words, " ");
}

/// Rows of published mixtures: experts in each and in some layers, with and without chunks, and with stages
/// of which each has its own number of layers.
std::vector<RunRow> mixtures() {
  const RunRow kModels[] = {
      {{"model", "Mixtral-8x7B"}, {"layers", "32"}, {"hidden", "4096"}},
      {{"model", "Qwen3_235B_a22B"}, {"layers", "94"}, {"hidden", "4096"}},
      {{"model", "GPT OSS 120B"}, {"layers", "36"}, {"hidden", "2880"}},
      {{"model", "deepseekv2 (L=4)"}, {"arch", "moe-mla"}, {"layers", "4"}, {"hidden", "5120"}},
      {{"model", "DeepSeekV3"}, {"arch", "moe-mla"}, {"layers", "61"}, {"hidden", "7168"}}};
  const RunRow kLayouts[] = {
      {{"ep", "8"}},
      {{"tp", "2"}, {"sp", "y"}, {"ep", "8"}, {"recompute", "norm,act"}, {"features", "deepep"}},
      {{"pp", "2"}, {"ep", "8"}, {"precision", "fp8"}},
      {{"pp", "4"}, {"vpp", "2"}, {"ep", "4"}, {"features", "a2a_overlap+deepep"}},
      {{"pp", "8"}, {"ep", "8"}, {"dist_opt", "zero3"}, {"recompute", "full"}}};
  std::vector<RunRow> out;
  for (const char* framework : {"Megatron-Bridge", "Megatron-LM"})
    for (const RunRow& model : kModels)
      for (const RunRow& layout : kLayouts) {
        RunRow row = {{"framework", framework}, {"gpu", "H100-SXM-80GB"}, {"gpus", "64"},
                      {"seq", "4096"},          {"micro_batch", "1"},     {"global_batch", "1024"}};
        const RunRow usual = {{"arch", "moe"}, {"precision", "bf16"}, {"dist_opt", "y"}};
        for (const RunRow& part : {model, layout, usual}) row.insert(part.begin(), part.end());
        if (whole_in(row, "pp", 1) <= whole_in(row, "layers")) out.push_back(row);
      }
  return out;
}

/// Expects that the row's command is planned as the row is; nothing if there is no such command, or no layout
/// that Megatron's rules allow, such as an interleaved one of some batches. Whether there is one.
bool is_told_alike(const RunRow& row) {
  const auto words = command_of(row);
  if (!words) return false;
  const std::optional<Priced> told = by_command(*words);
  if (!told) return false;
  const PlanProblem p = problem_of(row);
  const Candidate c = candidate_of(row, p);
  EXPECT_EQ(told->candidate, c) << join(*words, " ");
  expect_equal(step_time(told->problem, told->candidate).total(), step_time(p, c).total(), *words);
  const MemoryEstimate here = worst_stage(told->problem, told->candidate).estimate,
                       there = worst_stage(p, c).estimate;
  expect_equal(here.device(), there.device(), *words);
  expect_equal(here.needed() / usable_memory(told->problem), there.needed() / usable_memory(p), *words);
  return true;
}

// What bench_plan_accuracy says of a row, megalith-autoplan says of the row's command.
TEST(CodeBase, ARowIsPricedAlikeByTheTableAndByItsCommand) {
  const std::vector<RunRow> all = rows();
  for (const RunRow& row : all) ASSERT_TRUE(command_of(row));
  EXPECT_GE(std::count_if(all.begin(), all.end(), is_told_alike), std::ssize(all) * 4 / 5);
}

// DeepSeek-V3: 61 layers, of which the first three have no experts.
TEST(CodeBase, ARowOfAMixtureHasAsManyLayersAsItSays) {
  for (const auto& [layers, plain] : {std::pair{"4", 3}, {"61", 3}, {"64", 3}}) {
    const PlanProblem p = problem_of({{"framework", "Megatron-LM"},
                                      {"model", "DeepSeekV3"},
                                      {"arch", "moe-mla"},
                                      {"layers", layers},
                                      {"gpu", "H100-SXM-80GB"},
                                      {"gpus", "64"},
                                      {"seq", "4096"}});
    EXPECT_EQ(std::to_string(p.model.layers), layers);
    EXPECT_EQ(p.model.plain_layers(p.model.layers), plain) << layers;
  }
}

TEST(CodeBase, ARowOfAMixtureIsPricedAlikeByTheTableAndByItsCommand) {
  const std::vector<RunRow> all = mixtures();
  for (const RunRow& row : all) {
    const int layers = whole_in(row, "layers");  // 32, or 94 with both ends: four stages of two equal chunks
    EXPECT_EQ(command_of(row).has_value(), !row.contains("vpp") || layers == 32 || layers == 94);
  }
  EXPECT_GE(std::count_if(all.begin(), all.end(), is_told_alike), std::ssize(all) * 3 / 5);
}

// bench/plan_rows.csv: public runs of code bases and devices that the fits have not seen.
TEST(CodeBase, EveryPublicRowHasASourceAndAPrice) {
  for (const RunRow& row : read_run_rows(MEGALITH_SOURCE_DIR "/bench/plan_rows.csv")) {
    EXPECT_NE(cell(row, "source").find(" at "), std::string::npos) << "no commit: " << cell(row, "source");
    ASSERT_TRUE(expressible(row)) << cell(row, "source");
    EXPECT_GT(number_in(row, "iter_time_s"), 0);
    const auto words = command_of(row);
    ASSERT_TRUE(words);
    const std::optional<Priced> told = by_command(*words);
    ASSERT_TRUE(told) << join(*words, " ");
    const PlanProblem p = problem_of(row);
    expect_equal(step_time(told->problem, told->candidate).total(),
                 step_time(p, candidate_of(row, p)).total(), *words);
  }
}

/// What docs/planner.md says of the public rows of a class: how far times and memory are off at most, on
/// average, in per cent; 0: not measured.
struct Off {
  double time = 0, memory = 0;
};

TEST(CodeBase, PublicRowsAreAsFarOffAsThePageSays) {
  const std::map<std::string, Off> page = {{"llmq_4090", {19.8, 0}},         {"llmq_h100", {10.8, 0}},
                                           {"modellink", {12.6, 0}},         {"nanotron", {19.8, 0}},
                                           {"torchtitan_3d", {13.5, 15.7}},  {"torchtitan_h200", {6.3, 1.2}},
                                           {"torchtitan_long", {11.2, 14.6}}};
  std::map<std::string, Off> sums;
  std::map<std::string, int> counts;
  int within = 0;
  for (const RunRow& row : read_run_rows(MEGALITH_SOURCE_DIR "/bench/plan_rows.csv")) {
    const PlanProblem p = problem_of(row);
    const Candidate c = candidate_of(row, p);
    Off& sum = sums[cell(row, "eval_class")];
    ++counts[cell(row, "eval_class")];
    const double seconds = step_time(p, c).total(), measured_seconds = number_in(row, "iter_time_s");
    sum.time += 100 * std::abs(seconds / measured_seconds - 1);
    const Interval range = step_interval(p, c, seconds);
    within += range.low <= measured_seconds && measured_seconds <= range.high;
    if (const double measured = number_in(row, "peak_mem_gb"); measured > 0)
      sum.memory += 100 * std::abs(worst_stage(p, c).estimate.reserved() / 1e9 / measured - 1);
    const bool counts_memory = cell(row, "framework") == "torchtitan";
    if (counts_memory) {
      EXPECT_LE(worst_stage(p, c).estimate.needed(), usable_memory(p)) << "it ran: " << cell(row, "source");
    }
  }
  EXPECT_EQ(within, 78);
  ASSERT_EQ(sums.size(), page.size());
  for (const auto& [name, sum] : sums) {
    EXPECT_NEAR(sum.time / counts[name], page.at(name).time, 0.06) << name;
    EXPECT_NEAR(sum.memory / counts[name], page.at(name).memory, 0.06) << name;
  }
}

}  // namespace
}  // namespace megalith

// Every layout trains as one rank does (docs/training.md, "Many ranks").
#include "tests/train/run/layouts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/step/trainer.h"
#include "tests/support/files.h"
#include "tests/support/large.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::Family;
using test::kGpt2;
using test::kLlama;
using test::kOnlyAmongLargeTests;
using test::large_tests_wanted;
using test::Layout;
using test::layouts;
using test::shared;
using test::TempDir;

/// A run's vocabulary and steps. The padding of both vocabularies differs by the number of tensor ranks. With
/// the large one, which is GPT-2's, the head takes nearly all of a run's time.
struct Extent {
  int64_t vocab = 1025, steps = 20;
};
constexpr int64_t kGpt2Vocab = 50257;

/// Four layers, dropout on, 8 samples per step.
PretrainConfig one_rank(const Family& family, const Extent& extent = {}) {
  PretrainConfig config = test::tiny_config();
  config.model.layers = 4;
  config.model.heads = 4;
  config.model.seq_length = config.model.max_positions = 16;  // can be split over tensor and context ranks
  config.model.vocab_size = extent.vocab;
  test::set_family(config.model, family);
  config.train.micro_batch = 1;
  config.train.global_batch = 8;
  config.train.iters = extent.steps;
  config.train.lr = 2e-3;
  config.train.eval_interval = std::min(int64_t{10}, extent.steps);
  config.train.eval_iters = 1;
  config.train.threads = 1;
  config.parallel = {};
  config.finish();
  return config;
}

PretrainConfig config_of(const Family& family, const Layout& layout, const Extent& extent = {}) {
  return shared(one_rank(family, extent), layout);
}

/// The run's figures: the lines of --log-json by iteration.
struct Curve {
  std::map<int64_t, double> loss, grad_norm, valid, loss_scale;
  std::set<int64_t> skipped;
};

Curve run(PretrainConfig config) {
  const TempDir dir;
  config.train.log_json = (dir.path() / "log.jsonl").string();
  Problems problems;
  config.validate(problems);
  problems.throw_if_any();
  EXPECT_EQ(train(config, test::tiny_data(), nullptr).stopped_by, "") << "a signal from outside";
  Curve curve;
  std::istringstream lines(read_file(config.train.log_json));
  for (std::string line; std::getline(lines, line);) {
    const Json entry = Json::parse(line, "log");
    const std::string& type = entry["type"].as_string();
    if (type == "train") {
      curve.loss[entry["iteration"].as_int()] = entry["loss"].as_double();
      if (entry["grad_norm"].is_number())
        curve.grad_norm[entry["iteration"].as_int()] = entry["grad_norm"].as_double();
      curve.loss_scale[entry["iteration"].as_int()] = entry["loss_scale"].as_double();
      if (entry["skipped"].as_bool()) curve.skipped.insert(entry["iteration"].as_int());
    }
    if (type == "valid") curve.valid[entry["iteration"].as_int()] = entry["loss"].as_double();
  }
  return curve;
}

// Promise R15: layouts may differ by this after 20 steps, because they add fp32 numbers in another order.
constexpr double kLayoutTolerance = 1e-5;

void expect_same(const std::map<int64_t, double>& got, const std::map<int64_t, double>& want,
                 double tolerance, const char* what) {
  for (const auto& [iteration, value] : got) {
    ASSERT_TRUE(want.contains(iteration)) << what << " of iteration " << iteration;
    EXPECT_NEAR(value / want.at(iteration), 1, tolerance) << what << " of iteration " << iteration;
  }
}

const Curve& reference(const Family& family, const Extent& extent = {}) {
  static std::map<std::tuple<std::string, int64_t, int64_t>, Curve> curves;
  auto [at, made] = curves.try_emplace({family.name, extent.vocab, extent.steps});
  if (made) at->second = run(one_rank(family, extent));
  return at->second;
}

class Layouts : public testing::TestWithParam<test::FamilyLayout> {};
INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(test::family_layouts()), test::name_of);

/// Every rank also calls check_memory() at its end, which checks that every arena is as large as run_memory()
/// predicted.
void expect_one_ranks_run(const Family& family, const Layout& layout, const Extent& extent = {}) {
  SCOPED_TRACE(std::string(family.name) + " " + layout.name);
  const Curve curve = run(config_of(family, layout, extent)), &whole = reference(family, extent);
  ASSERT_EQ(curve.loss.size(), static_cast<size_t>(extent.steps));
  expect_same(curve.loss, whole.loss, kLayoutTolerance, "loss");
  expect_same(curve.grad_norm, whole.grad_norm, 10 * kLayoutTolerance, "gradient norm");
  expect_same(curve.valid, whole.valid, kLayoutTolerance, "validation loss");
}

TEST_P(Layouts, TrainAsOneRankDoes) {
  const auto& [family, layout] = GetParam();
  expect_one_ranks_run(family, layout);
}

TEST(Layouts, TrainQwen3AsOneRankDoes) {
  const std::vector<Layout> some = test::some_layouts();
  EXPECT_EQ(some.size(), 6U);
  for (const Layout& layout : some) expect_one_ranks_run(test::kQwen3, layout);
}

// A rank counts layers over the whole model.
TEST(Layouts, TrainSmolLm3AsOneRankDoes) {
  const Layout all{.name = "pp4", .pipeline = 4};
  const Layout some{.name = "pp2_vpp2_cp2", .pipeline = 2, .context = 2, .layers_per_chunk = 1};
  for (const Layout& layout : {all, some}) expect_one_ranks_run(test::kSmolLm3, layout);
}

// A rank holds a part of each sample, but its rotation is that of the whole.
TEST(Layouts, TrainPhi3AsOneRankDoes) {
  for (const Layout& layout :
       {Layout{.name = "cp2", .context = 2}, Layout{.name = "tp2_pp2", .tensor = 2, .pipeline = 2}})
    expect_one_ranks_run(test::kPhi3, layout);
}

// Both branches of a layer leave the tensor region by themselves.
TEST(Layouts, TrainGptNeoXAsOneRankDoes) {
  const std::vector<Layout> some = test::some_layouts();
  EXPECT_EQ(some.size(), 6U);
  for (const Layout& layout : some) expect_one_ranks_run(test::kGptNeoX, layout);
}

TEST(Layouts, TrainFalconAsOneRankDoes) {
  for (const Layout& layout : test::some_layouts())
    if (layout.tensor > 1) expect_one_ranks_run(test::kFalcon, layout);
}

// Tensor ranks share OLMo's norms over all heads, context ranks the windows of every second layer.
TEST(Layouts, TrainOlmo3AsOneRankDoes) {
  for (const Layout& layout : test::some_layouts()) expect_one_ranks_run(test::kOlmo3, layout);
}

// Granite scales the embedding and the logits, which tensor ranks share, and the branches of every layer.
TEST(Layouts, TrainGraniteAsOneRankDoes) {
  const Layout sequence{.name = "tp2_sp_pp2", .tensor = 2, .pipeline = 2, .sequence = true};
  const Layout plain{.name = "tp2_full", .tensor = 2, .recompute = Recompute::kFull};
  for (const Layout& layout : {sequence, plain}) expect_one_ranks_run(test::kGranite, layout);
}

// Only tensor ranks divide the vocabulary and change its padding. Five steps, of which each takes as long as
// ten with the small vocabulary; the layouts' 20 steps are those of TrainAsOneRankDoes.
TEST(Layouts, DivideGpt2sVocabularyAndTrainAsOneRankDoes) {
  for (const auto& [family, layout] : test::family_layouts())
    if (layout.tensor > 1) expect_one_ranks_run(family, layout, {.vocab = kGpt2Vocab, .steps = 5});
}

// A pipeline adds all numbers in the same order as one rank, except for a table tied over its two ends, whose
// gradients it adds. This model has no tied table, so every bit must agree.
TEST(Pipeline, OfAnUntiedModelIsBitwiseOneRank) {
  for (const Layout& layout : {Layout{.name = "pp2", .pipeline = 2},
                               Layout{.name = "pp2_vpp2", .pipeline = 2, .layers_per_chunk = 1}}) {
    const Curve curve = run(config_of(kLlama, layout)), &whole = reference(kLlama);
    for (const auto& [iteration, loss] : curve.loss) EXPECT_EQ(loss, whole.loss.at(iteration)) << layout.name;
  }
}

TEST(Layouts, AreBitwiseTheSameFromRunToRun) {
  const Layout layout{.name = "tp2_pp2_dp2",
                      .tensor = 2,
                      .pipeline = 2,
                      .data = 2,
                      .sequence = true,
                      .sharding = Sharding::kOptimizer};
  const Curve once = run(config_of(kGpt2, layout)), again = run(config_of(kGpt2, layout));
  EXPECT_EQ(once.loss, again.loss);
  EXPECT_EQ(once.grad_norm, again.grad_norm);
}

/// Every legal layout of up to 8 ranks, useful or not.
std::vector<Layout> every_layout() {
  std::vector<Layout> all;
  for (const int tensor : {1, 2, 4})
    for (const int pipeline : {1, 2, 4})
      for (const int context : {1, 2, 4})
        for (const int data : {1, 2, 4, 8})
          for (const bool sequence : {false, true})
            for (const int chunk : {0, 1})
              for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients})
                for (const Recompute recompute :
                     {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
                  const bool interleaved = chunk > 0;
                  const int ranks = tensor * pipeline * context * data;
                  if (ranks > 8 || ranks == 1) continue;
                  if ((sequence && tensor == 1) || (interleaved && pipeline != 2)) continue;
                  if (sharding != Sharding::kNone && context * data == 1) continue;
                  if (sharding == Sharding::kGradients && pipeline > 1) continue;
                  all.push_back({.name = "one of all",
                                 .tensor = tensor,
                                 .pipeline = pipeline,
                                 .context = context,
                                 .data = data,
                                 .sequence = sequence,
                                 .sharding = sharding,
                                 .layers_per_chunk = chunk,
                                 .recompute = recompute});
                }
  return all;
}

std::string text_of(const Layout& layout) {
  return concat("tensor ", layout.tensor, ", pipeline ", layout.pipeline, ", context ", layout.context,
                ", data ", layout.data, ", sequence ", layout.sequence, ", chunk ", layout.layers_per_chunk,
                ", sharding ", enum_name(layout.sharding), ", recompute ", enum_name(layout.recompute));
}

TEST(Layouts, OfEveryKindTrainAsOneRankDoes) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  constexpr Extent kExtent{.vocab = kGpt2Vocab};
  for (const Family& family : {kGpt2, kLlama})
    for (const Layout& layout : every_layout()) {
      SCOPED_TRACE(std::string(family.name) + ": " + text_of(layout));
      const Curve curve = run(config_of(family, layout, kExtent)), &whole = reference(family, kExtent);
      expect_same(curve.loss, whole.loss, kLayoutTolerance, "loss");
      expect_same(curve.valid, whole.valid, kLayoutTolerance, "validation loss");
    }
}

// In a bf16 run gradients and masters are fp32. So layouts differ only where a weight is rounded to a
// neighbouring bf16 value.
TEST(Layouts, OfDataParallelRanksIn16BitsFollowOneRank) {
  constexpr double kFewRoundings = 1e-4;
  const auto in_16_bits = [](PretrainConfig config) {
    config.train.bf16 = true;
    return run(config);
  };
  const Curve whole = in_16_bits(one_rank(kGpt2));
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients})
    expect_same(in_16_bits(config_of(kGpt2, {.name = "dp2", .data = 2, .sharding = sharding})).loss,
                whole.loss, kFewRoundings, "loss");
}

// Activations and their gradients are rounded to fp16. With another order of sums a result may be rounded to
// a neighbouring value, 2^-11 away. A loss is the mean over 96 tokens, whose errors differ. The first steps
// overflow: all layouts must skip the same steps, and so must all ranks, because a rank that skipped a step
// alone would have other weights.
TEST(Layouts, InFp16SkipTheSameStepsAndFollowOneRank) {
  constexpr double kFp16Rounding = 1e-3;
  const auto in_fp16 = [](PretrainConfig config) {
    config.train.fp16 = true;
    config.train.initial_loss_scale = 0x1p23;
    return run(config);
  };
  std::map<std::string, Curve> whole;
  for (const Family& family : {kGpt2, kLlama}) whole[family.name] = in_fp16(one_rank(family));
  ASSERT_TRUE(whole["gpt2"].skipped.contains(1)) << "no overflow to agree on";
  ASSERT_FALSE(whole["gpt2"].skipped.contains(20));
  for (const auto& [family, name] :
       std::vector<std::pair<Family, std::string>>{{kGpt2, "tp2_sp"},
                                                   {kGpt2, "pp2"},
                                                   {kGpt2, "dp2"},
                                                   {kGpt2, "dp2_zero2"},
                                                   {kLlama, "tp2_sp_pp2_dp2_zero1"}}) {
    SCOPED_TRACE(std::string(family.name) + " " + name);
    const auto layout = std::find_if(layouts().begin(), layouts().end(),
                                     [&wanted = name](const Layout& one) { return one.name == wanted; });
    ASSERT_NE(layout, layouts().end());
    const Curve curve = in_fp16(config_of(family, *layout)), &one = whole[family.name];
    EXPECT_EQ(curve.skipped, one.skipped);
    EXPECT_EQ(curve.loss_scale, one.loss_scale);
    expect_same(curve.loss, one.loss, kFp16Rounding, "loss");
  }
}

/// Runs ten iterations in one layout, saves, and runs ten more in the other layout.
Curve resume(const Family& family, const Layout& first, const Layout& second) {
  const TempDir dir;
  PretrainConfig config = config_of(family, first);
  config.checkpoint.save = config.checkpoint.load = (dir.path() / "checkpoint").string();
  config.train.exit_interval = 10;
  run(config);
  PretrainConfig other = config_of(family, second);
  other.checkpoint.load = config.checkpoint.save;
  return run(other);
}

class Resume : public testing::TestWithParam<std::pair<Layout, Layout>> {};
INSTANTIATE_TEST_SUITE_P(All, Resume, testing::ValuesIn([] {
                           std::vector<std::pair<Layout, Layout>> pairs;
                           const std::vector<Layout>& all = layouts();
                           const Layout one{.name = "one"};
                           for (size_t i = 0; i < all.size(); ++i)
                             pairs.push_back({all[i], all[(i + 5) % all.size()]});
                           pairs.push_back({one, all.back()});
                           pairs.push_back({all.back(), one});
                           return pairs;
                         }()),
                         [](const auto& instance) {
                           return std::string(instance.param.first.name) + "_to_" +
                                  instance.param.second.name;
                         });

TEST_P(Resume, UnderAnotherLayoutResumesAsOneRun) {
  const auto& [first, second] = GetParam();
  const Curve curve = resume(kGpt2, first, second), whole = run(one_rank(kGpt2));
  ASSERT_EQ(curve.loss.size(), 10U);
  expect_same(curve.loss, whole.loss, kLayoutTolerance, "loss");
}

// The run that is resumed in its middle is the one that went on.
TEST(Resume, UnderTheSameLayoutIsBitwiseOneRun) {
  for (const Family& family : {kGpt2, kLlama})
    for (const Layout& layout : layouts()) {
      if (layout.tensor * layout.pipeline * layout.context * layout.data > 4) continue;
      SCOPED_TRACE(std::string(family.name) + " " + layout.name);
      const TempDir dir;
      constexpr Extent kExtent{.steps = 6};
      PretrainConfig config = config_of(family, layout, kExtent);
      config.checkpoint.save = (dir.path() / "checkpoint").string();
      config.checkpoint.save_interval = 3;
      const Curve whole = run(config);
      PretrainConfig half = config_of(family, layout, kExtent);
      half.checkpoint.load = config.checkpoint.save + "/iter_0000003";
      const Curve broken = run(half);
      ASSERT_EQ(broken.loss.size(), 3U);
      for (const auto& [iteration, loss] : broken.loss)
        EXPECT_EQ(loss, whole.loss.at(iteration)) << iteration;
    }
}

// The 16-bit values are rounded from the masters, so a run that resumes in fp32 must read the masters.
TEST(Resume, InFp32OfA16BitRunTakesTheMasters) {
  const TempDir dir;
  PretrainConfig config = config_of(kGpt2, {.name = "dp2", .data = 2, .sharding = Sharding::kOptimizer});
  config.train.bf16 = true;
  config.checkpoint.save = (dir.path() / "checkpoint").string();
  config.train.exit_interval = 10;
  run(config);

  PretrainConfig wide = one_rank(kGpt2);
  const auto backend = make_cpu_backend();
  const auto self = make_self_comm();
  Trainer expected({wide.model, wide.parallel, wide.train}, *backend, *self);
  const CheckpointReader saved(config.checkpoint.save);
  for (const Param& param : expected.params().all()) {
    if (!param.tie.empty()) continue;
    const Box box = Box::whole(concat("optim.master.", param.name), param.global);
    saved.read(box, View{param.value.data, DType::kF32, param.global});
  }
  wide.checkpoint.load = config.checkpoint.save;
  wide.train.exit_interval = 11;
  EXPECT_EQ(run(wide).loss.at(11), expected.step(test::tiny_sample, 80, 1e-3).loss);
}

}  // namespace
}  // namespace megalith

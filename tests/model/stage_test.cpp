#include "libcore/model/stage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/config/activations.h"
#include "libcore/model/embedding.h"
#include "libcore/model/head.h"
#include "libcore/model/measure.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::HostBatch;
using test::TinyModel;

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

ModelConfig with_dropout(ModelConfig config) {
  config.attention_dropout = 0.2;
  config.hidden_dropout = 0.3;
  return config;
}

struct Case {
  std::string name;
  ModelConfig config;
};

std::vector<Case> cases() {
  std::vector<Case> out{
      {"gpt2", test::tiny_gpt2()},         {"gpt2_dropout", with_dropout(test::tiny_gpt2())},
      {"llama", test::tiny_llama()},       {"llama_dropout", with_dropout(test::tiny_llama())},
      {"qwen3", test::tiny_qwen3()},       {"qwen3_dropout", with_dropout(test::tiny_qwen3())},
      {"gpt_neox", test::tiny_gpt_neox()}, {"gpt_neox_dropout", with_dropout(test::tiny_gpt_neox())},
      {"falcon", test::tiny_falcon()},     {"falcon_dropout", with_dropout(test::tiny_falcon())},
      {"olmo2", test::tiny_olmo2()},       {"olmo2_dropout", with_dropout(test::tiny_olmo2())}};
  Case odd{"gpt2_exact_gelu_without_qkv_bias", test::tiny_gpt2()};
  odd.config.bias_gelu_fusion = false;
  odd.config.qkv_bias = false;
  out.push_back(odd);
  for (const ActivationRow& row : activations()) {
    if (row.function == ActivationFunction::kRelu) continue;  // its kink spoils slopes over long steps
    Case one{"gpt2_" + std::string(row.hf.front()), test::tiny_gpt2()};
    one.config.hidden_act = row.hf.front();
    out.push_back(one);
  }
  Case layer_norms{"gpt2_with_head_norms", test::tiny_gpt2()};  // whose norms have biases
  layer_norms.config.qk_layernorm = true;
  out.push_back(layer_norms);
  out.push_back({"granite", test::tiny_granite()});
  out.push_back({"granite_dropout", with_dropout(test::tiny_granite())});
  for (const NormPlacement placement : {NormPlacement::kAfter, NormPlacement::kBoth}) {
    Case one{concat("gpt2_with_norms_", enum_name(placement)), with_dropout(test::tiny_gpt2())};
    one.config.norm_placement = placement;
    out.push_back(one);
  }
  Case scaled{"gpt_neox_with_scaled_branches", with_dropout(test::tiny_gpt_neox())};
  Case shared{"falcon_with_scaled_branches", with_dropout(test::tiny_falcon())};
  Case enclosed{"granite_with_norms_both", with_dropout(test::tiny_granite())};
  scaled.config.residual_multiplier = shared.config.residual_multiplier = 0.6;
  enclosed.config.norm_placement = NormPlacement::kBoth;
  for (const Case& combined : {scaled, shared, enclosed}) out.push_back(combined);
  Case windows{"llama_with_a_window_in_its_second_layer", test::tiny_llama()};
  windows.config.sliding_window = 3;
  windows.config.full_layers = 1;
  out.push_back(windows);
  Case partial{"llama_partly_rotated_with_biases", test::tiny_llama()};
  partial.config.rotary_percent = 0.5;
  partial.config.linear_bias = true;
  partial.config.qkv_bias = true;
  out.push_back(partial);
  Case grown{"llama_with_grown_heads", test::tiny_llama()};  // whose rotation is not of length 1
  grown.config.rope_type = RopeType::kYarn;
  grown.config.rope_original_positions = 4;
  grown.config.rope_attention_factor = 1.2;
  out.push_back(grown);
  return out;
}

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// Whether the loss does not depend on the parameter. What is added to all keys adds the same number to all
/// scores of a query, which the softmax does not see, unless the rotation makes it another one for each key.
bool has_no_effect(const ModelConfig& config, const Param& param) {
  return config.position != PositionEmbedding::kRope && param.name.ends_with(".k_layernorm.bias");
}

class StageCase : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Families, StageCase, testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

// In the direction of a parameter's gradient g, the loss must rise by |g| per unit of length. A gradient that
// is too long, too short or in another direction fails. In fp32 a step of 5e-3 gives the difference of two
// losses an error of about 1e-6 / 1e-2, and the third derivative adds about as much.
TEST_P(StageCase, GradientIsTheSlopeOfTheLoss) {
  TinyModel model(GetParam().config);
  test::perturb(model);
  const HostBatch batch(GetParam().config, 7, 3);
  model.loss(batch.view(), true);
  std::map<std::string, std::vector<float>> gradients;
  for (const Param& param : model.table.all()) gradients[param.name] = model.read(param.grad);
  for (const Param& param : model.table.all()) {
    if (!param.tie.empty()) continue;
    const std::vector<float>& gradient = gradients[param.name];
    const std::vector<float> value = model.read(param.value);
    const double length = norm(gradient);
    if (has_no_effect(GetParam().config, param)) {
      EXPECT_LT(length, 1e-6) << param.name;
      continue;
    }
    ASSERT_GT(length, 1e-4) << param.name;
    const double step = 5e-3 / std::max(1.0, length);  // so that a long gradient's loss moves no further
    const auto loss_at = [&](double distance) {
      std::vector<float> moved = value;
      for (size_t i = 0; i < moved.size(); ++i)
        moved[i] += static_cast<float>(distance / length * gradient[i]);
      model.write(param.value, moved);
      model.tape.clear();
      return model.sum(model.stage.forward(model.ctx(true), batch.view(), {}, model.tape)) *
             batch.view().grad_scale;
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    model.write(param.value, value);
    EXPECT_NEAR(slope, length, 2e-4 + 5e-3 * length) << param.name;
  }
}

TEST_P(StageCase, RecomputingChangesNothing) {
  const HostBatch batch(GetParam().config, 7, 3);
  TinyModel kept(GetParam().config);
  const double loss = kept.loss(batch.view(), true);
  const std::vector<float> gradient = kept.read(kept.store.grads());
  for (const RecomputePlan plan :
       {RecomputePlan{Recompute::kSelective, false, 0}, RecomputePlan{Recompute::kFull, false, 0},
        RecomputePlan{Recompute::kFull, false, 2}, RecomputePlan{Recompute::kFull, true, 1}}) {
    TinyModel again(GetParam().config, plan);
    EXPECT_EQ(again.loss(batch.view(), true), loss);
    EXPECT_EQ(again.read(again.store.grads()), gradient);
    EXPECT_LT(again.tape.arena.peak(), kept.tape.arena.peak());
  }
}

/// Gives parameters their values only when a forward pass says that it will read them. Until then they are
/// not numbers.
class LateParams final : public ParamGate {
 public:
  explicit LateParams(TinyModel& model) : model_(model) {
    for (const Param& param : model.table.all()) values_.push_back(model.read(param.value));
    for (const Param& param : model.table.all())
      model.write(param.value, std::vector<float>(static_cast<size_t>(param.value.elements()), NAN));
  }
  void unit_begins(Stream&, int unit) override {
    for (size_t i = 0; i < values_.size(); ++i)
      if (const Param& param = model_.table.all()[i]; param.unit == unit)
        model_.write(param.value, values_[i]);
  }

 private:
  TinyModel& model_;
  std::vector<std::vector<float>> values_;  // parallel to the table
};

TEST_P(StageCase, AForwardPassReadsAUnitOnlyAfterItHasBegun) {
  const HostBatch batch(GetParam().config, 7, 3);
  for (const bool training : {true, false})
    for (const RecomputePlan plan :
         {RecomputePlan{}, RecomputePlan{Recompute::kSelective, false, 0},
          RecomputePlan{Recompute::kFull, false, 2}, RecomputePlan{Recompute::kFull, true, 1}}) {
      TinyModel model(GetParam().config, plan), late(GetParam().config, plan);
      LateParams params(late);
      Ctx ctx = late.ctx(training);
      ctx.params = &params;
      const std::vector<float> expected =
          model.read(model.stage.forward(model.ctx(training), batch.view(), {}, model.tape));
      EXPECT_EQ(late.read(late.stage.forward(ctx, batch.view(), {}, late.tape)), expected);
    }
}

// bf16 keeps 8 bits: each of some ten roundings between the embedding and the loss has an error of up to 2^-9
// for a value around 1, of either sign. The gradient of a norm of queries or keys sums few differences that
// nearly cancel; in eight models of this size, transformers' bf16 was at most 0.096 of it away from fp32.
// Norms after the branches enlarge roundings: in twelve models of OLMo 2 it was up to 0.076 of a gradient
// away.
TEST_P(StageCase, Bf16StaysNearFp32) {
  const HostBatch batch(GetParam().config, 7, 3);
  TinyModel fine(GetParam().config), coarse(GetParam().config, {}, DType::kBf16);
  EXPECT_NEAR(coarse.loss(batch.view(), true), fine.loss(batch.view(), true), 0.02);
  for (const Param& param : fine.table.all()) {
    if (has_no_effect(GetParam().config, param)) continue;
    const bool head_norm = param.name.find("self_attention.q_layernorm") != std::string::npos ||
                           param.name.find("self_attention.k_layernorm") != std::string::npos;
    const std::vector<float> expected = fine.read(param.grad);
    std::vector<float> difference = coarse.read(coarse.table.find(param.name)->grad);
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= expected[i];
    const bool wide = head_norm || GetParam().config.norms_after();
    EXPECT_LT(norm(difference), (wide ? 0.1 : 0.05) * norm(expected)) << param.name;
  }
}

// The planner's memory figures must equal those of a real run, to the byte.
TEST_P(StageCase, MeasuredMemoryIsWhatARunTakes) {
  const HostBatch batch(GetParam().config, 7, 3);
  TinyModel model(GetParam().config);
  model.loss(batch.view(), true);
  const StageCost cost =
      measure({.model = GetParam().config, .layers = {.count = GetParam().config.layers}, .micro_batch = 3});
  EXPECT_EQ(cost.tape, model.tape.arena.peak());
  EXPECT_EQ(cost.scratch, model.scratch.peak());
  EXPECT_EQ(cost.values, model.store.values().bytes());
  EXPECT_EQ(cost.parameters, model.table.elements());
  EXPECT_GT(cost.forward.flops, 0);
  EXPECT_GT(cost.backward.flops, cost.forward.flops);
}

// Dropout masks depend on the sample number, so the loss of a sample must not depend on the other samples of
// its micro-batch.
TEST_P(StageCase, ALossDoesNotDependOnItsNeighbours) {
  TinyModel model(GetParam().config);
  const HostBatch batch(GetParam().config, 7, 3);
  model.loss(batch.view(), true);
  model.tape.clear();
  const std::vector<float> together =
      model.read(model.stage.forward(model.ctx(true), batch.view(), {}, model.tape));
  for (int64_t sample = 0; sample < 3; ++sample) {
    HostBatch alone(GetParam().config, 7, 1);
    for (size_t row = 0; row < 7; ++row) {
      const size_t from = row * 3 + static_cast<size_t>(sample);
      alone.tokens[row] = batch.tokens[from];
      alone.labels[row] = batch.labels[from];
      alone.mask[row] = batch.mask[from];
    }
    alone.samples[0] = batch.samples[static_cast<size_t>(sample)];
    model.tape.clear();
    const std::vector<float> losses =
        model.read(model.stage.forward(model.ctx(true), alone.view(), {}, model.tape));
    for (size_t row = 0; row < 7; ++row)
      EXPECT_NEAR(losses[row], together[row * 3 + static_cast<size_t>(sample)], 1e-5);
  }
}

TEST_P(StageCase, EvaluationDropsNothingAndKeepsLittle) {
  ModelConfig still = GetParam().config;
  still.attention_dropout = still.hidden_dropout = 0;
  TinyModel model(GetParam().config), plain(still);
  const HostBatch batch(GetParam().config, 7, 3);
  EXPECT_EQ(model.loss(batch.view(), false), plain.loss(batch.view(), true));
  EXPECT_LT(model.tape.arena.peak(), plain.tape.arena.peak());
  EXPECT_EQ(norm(model.read(model.store.grads())), 0);
}

// The loss computed from the logits of generation must equal the training loss.
TEST_P(StageCase, LogitsGiveTheLoss) {
  TinyModel model(GetParam().config);
  const HostBatch batch(GetParam().config, 7, 3);
  model.tape.clear();
  const std::vector<float> losses =
      model.read(model.stage.forward(model.ctx(false), batch.view(), {}, model.tape));
  KvCache cache(*model.backend, model.stage.config(), model.stage.layers(), {}, {.batch = 3, .capacity = 7});
  const std::vector<float> logits =
      model.read(model.stage.logits(model.ctx(false), batch.view().tokens, 7, cache));
  const auto vocabulary = static_cast<size_t>(GetParam().config.vocab_size);
  for (size_t row = 0; row < losses.size(); ++row) {
    const float* const of_row = logits.data() + row * vocabulary;
    double sum = 0;
    for (size_t i = 0; i < vocabulary; ++i) sum += std::exp(of_row[i]);
    const double expected = std::log(sum) - of_row[batch.labels[row]];
    EXPECT_NEAR(losses[row], batch.mask[row] == 0 ? 0 : expected, 1e-5);
  }
}

TEST_P(StageCase, ReadingTokenByTokenGivesTheSameLogits) {
  TinyModel model(GetParam().config);
  const HostBatch batch(GetParam().config, 7, 3);
  const auto cache = [&] {
    return KvCache(*model.backend, model.stage.config(), model.stage.layers(), {},
                   {.batch = 3, .capacity = 7});
  };
  KvCache whole = cache(), stepwise = cache();
  const ConstView tokens = batch.view().tokens;
  const std::vector<float> at_once = model.read(model.stage.logits(model.ctx(false), tokens, 1, whole));
  std::vector<float> last;
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 5}, {5, 7}})
    last = model.read(model.stage.logits(model.ctx(false), tokens.rows(begin, end), 1, stepwise));
  ASSERT_EQ(last.size(), at_once.size());
  for (size_t i = 0; i < last.size(); ++i) EXPECT_NEAR(last[i], at_once[i], 1e-5);
  EXPECT_THROW(model.stage.logits(model.ctx(false), tokens.rows(0, 1), 1, stepwise), Error);
}

// A tree: 3 rows, then two continuations of the first 2, the second of which is read in two parts, then one
// of all 4 rows that the cache holds. Each row's scores must be those of the row in a text that is read
// alone.
TEST_P(StageCase, BranchesReadWhatTheirTextsReadAlone) {
  TinyModel model(GetParam().config);
  const auto vocabulary = static_cast<size_t>(GetParam().config.vocab_size);
  const auto cache = [&] {
    return KvCache(*model.backend, model.stage.config(), model.stage.layers(), {}, {.capacity = 5});
  };
  std::vector<int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8}, targets{2, 3, 4, 0, 1, 5, 9, 22};
  const std::vector<Branch> branches{{0, 3}, {2, 1}, {2, 1}, {3, 2}, {4, 1}};
  const std::vector<std::vector<int32_t>> texts{{1},       {1, 2},       {1, 2, 3},       {1, 2, 4},
                                                {1, 2, 5}, {1, 2, 5, 6}, {1, 2, 5, 6, 7}, {1, 2, 5, 6, 8}};
  KvCache whole = cache();
  const View output =
      model.stage.read_branches(model.ctx(false), {tokens.data(), DType::kI32, {8, 1}}, whole, branches);
  const auto floats = [&] { return model.scratch.make(DType::kF32, {8}, "scores"); };
  const Head::Scores scores{
      .loss = floats(), .max = floats(), .sum_exp = floats(), .targets = {targets.data(), DType::kI32, {8}}};
  model.stage.scores(model.ctx(false), scores, output);
  const std::vector<float> losses = model.read(scores.loss), largest = model.read(scores.max);
  for (size_t i = 0; i < texts.size(); ++i) {
    KvCache alone = cache();
    std::vector<int32_t> ids = texts[i];
    const std::vector<float> logits = model.read(model.stage.logits(
        model.ctx(false), {ids.data(), DType::kI32, {static_cast<int64_t>(ids.size()), 1}}, 1, alone));
    double sum = 0;
    for (size_t id = 0; id < vocabulary; ++id) sum += std::exp(logits[id]);
    EXPECT_NEAR(losses[i], std::log(sum) - logits[static_cast<size_t>(targets[i])], 1e-5) << i;
    EXPECT_NEAR(largest[i], *std::max_element(logits.begin(), logits.end()), 1e-5) << i;
  }
  for (const std::vector<Branch>& wrong :
       {std::vector<Branch>{{0, 7}}, {{0, 9}}, {{2, 8}}, {{-1, 8}}, {{0, 5}, {5, 3}}})
    EXPECT_THROW(
        model.stage.read_branches(model.ctx(false), {tokens.data(), DType::kI32, {8, 1}}, whole, wrong),
        Error);
}

// The embedding and the first layer are on one stage, the second layer and the head on another.
TEST_P(StageCase, TwoStagesComputeWhatOneDoes) {
  const ModelConfig& config = GetParam().config;
  const HostBatch batch(config, 7, 3);
  TinyModel whole(config);
  const double loss = whole.loss(batch.view(), true);

  ParamTable tables[2];
  const Stage front(config, {.first = 0, .count = 1, .head = false}, {}, tables[0]);
  const Stage back(config, {.first = 1, .count = 1, .embedding = false}, {}, tables[1]);
  const ParamStore stores[2]{{tables[0], whole.stream}, {tables[1], whole.stream}};
  for (ParamTable& table : tables) initialize(table, whole.stream, 5);

  Tape tapes[2]{Tape(make_arena(*whole.backend, "front", size_t{1} << 20)),
                Tape(make_arena(*whole.backend, "back", size_t{1} << 20))};
  const Ctx ctx = whole.ctx(true);
  const View passed = front.forward(ctx, batch.view(), {}, tapes[0]);
  EXPECT_EQ(whole.sum(back.forward(ctx, batch.view(), passed, tapes[1])) * batch.view().grad_scale, loss);
  const View d = back.backward(ctx, batch.view(), {}, tapes[1]);
  EXPECT_FALSE(front.backward(ctx, batch.view(), d, tapes[0]));

  for (Param& param : whole.table.all()) {
    std::vector<float> sum(static_cast<size_t>(param.global.elements()), 0.0f);
    for (ParamTable& table : tables)
      for (const Param& part : table.all())
        if (part.name == param.name || part.tie == param.name || part.name == param.tie) {
          const std::vector<float> gradient = whole.read(part.grad);
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
        }
    const std::vector<float> expected = whole.read(param.grad);
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-6) << param.name;
  }
}

/// A model whose vocabulary has padding rows, with the memory of a TinyModel.
struct PaddedModel {
  explicit PaddedModel(const ModelConfig& config)
      : other(config),
        stage(config, {.count = config.layers}, {.vocabulary = {.padded = true}}, table),
        store(table, other.stream) {
    initialize(table, other.stream, 5);
  }
  TinyModel other;
  ParamTable table;
  Stage stage;
  ParamStore store;
};

/// Expects the elements of a parameter's rows to be those of the unpadded one, and zeros after them.
void expect_padded(const std::vector<float>& padded, const std::vector<float>& plain, float limit,
                   const std::string& name) {
  ASSERT_GE(padded.size(), plain.size()) << name;
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(padded[i], plain[i], limit) << name << ' ' << i;
  for (size_t i = plain.size(); i < padded.size(); ++i) ASSERT_EQ(padded[i], 0) << name << ' ' << i;
}

// 23 ids in 128 rows. Products add up more zeros, so that sums have another order; the logits of the
// padding, all of them 0, are not in the loss.
TEST_P(StageCase, PaddingOfTheVocabularyTakesPartInNothing) {
  PaddedModel padded(GetParam().config);
  TinyModel plain(GetParam().config);
  const HostBatch batch(GetParam().config, 7, 3);
  for (const Param& param : padded.table.all()) {
    EXPECT_EQ(param.local.rows() == 128, param.global.rows() == 23) << param.name;
    expect_padded(plain.read(param.value), plain.read(plain.table.find(param.name)->value), 0, param.name);
  }
  const std::vector<float> expected =
      plain.read(plain.stage.forward(plain.ctx(true), batch.view(), {}, plain.tape));
  const std::vector<float> losses =
      plain.read(padded.stage.forward(padded.other.ctx(true), batch.view(), {}, padded.other.tape));
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-6 * expected[i]);
  plain.stage.backward(plain.ctx(true), batch.view(), {}, plain.tape);
  padded.stage.backward(padded.other.ctx(true), batch.view(), {}, padded.other.tape);
  for (const Param& param : padded.table.all())
    expect_padded(plain.read(param.grad), plain.read(plain.table.find(param.name)->grad), 1e-6F, param.name);
}

TEST_P(StageCase, PaddingOfTheVocabularyHasNoLogits) {
  PaddedModel padded(GetParam().config);
  TinyModel plain(GetParam().config);
  const HostBatch batch(GetParam().config, 7, 1);
  const auto logits = [&](const Stage& stage) {
    KvCache cache(*plain.backend, stage.config(), stage.layers(), {}, {.batch = 1, .capacity = 7});
    return plain.read(stage.logits(plain.ctx(false), batch.view().tokens, 7, cache));
  };
  EXPECT_EQ(logits(padded.stage), logits(plain.stage));
}

// With tensor parallelism each rank's share is rounded up: 23 ids in 2 shares of 16 rows become 2 of 128.
TEST(Stage, PadsEachShareOfTheVocabulary) {
  ModelConfig config = test::tiny_llama();
  for (const auto& [divisor, rows] : std::vector<std::pair<int, int64_t>>{{8, 128}, {128, 128}, {192, 256}}) {
    config.vocab_divisor = divisor;
    for (const int rank : {0, 1}) {
      ParamTable table;
      const Stage stage(config, {.count = 2}, {.rank = rank, .size = 2, .vocabulary = {.padded = true}},
                        table);
      for (const char* name : {kWordEmbeddings, "output_layer.weight"}) {
        EXPECT_EQ(table.find(name)->local[0], rows) << divisor;
        EXPECT_EQ(table.find(name)->offset, rank * rows);
        EXPECT_EQ(true_rows(*table.find(name)), rank == 0 ? 23 : 0);
      }
    }
  }
}

TEST(Stage, HasAsManyLogitsAtATimeAsTheDeviceAllows) {
  ModelConfig config = test::tiny_gpt2();
  config.vocab_size = 50257;
  config.seq_length = config.max_positions = 1024;
  const auto scratch = [&](int64_t bytes) {
    return measure({.model = config,
                    .layers = {.count = 1},
                    .split = {.vocabulary = {.padded = true, .logits_bytes = bytes}},
                    .dtype = DType::kBf16,
                    .micro_batch = 4})
        .scratch;
  };
  constexpr size_t kRow = 50304 * 2, kRest = size_t{4} << 20;
  for (const auto& [bytes, rows] : std::vector<std::pair<int64_t, size_t>>{
           {VocabularyForm::kLeastLogits, 1024}, {int64_t{256} << 20, 2048}, {int64_t{1} << 30, 4096}}) {
    EXPECT_GE(scratch(bytes), rows * kRow);
    EXPECT_LE(scratch(bytes), rows * kRow + kRest);
  }
}

// By hand: 128 MiB hold 1335 rows of 50,257 logits in bf16, so 4096 rows need four blocks.
TEST(Stage, HasFewBlocksOfLogitsOfEqualSize) {
  EXPECT_EQ(logits_block_rows(4096, 2 * 50257, int64_t{128} << 20), 1024);
  EXPECT_EQ(logits_block_rows(4097, 2 * 50257, int64_t{128} << 20), 1025);
  EXPECT_EQ(logits_block_rows(3, 100, 99), 1) << "no row fits";
  EXPECT_EQ(logits_block_rows(3, 100, 1000), 3) << "all rows fit";
}

// 512 rows of 70,001 logits do not fit into one block of VocabularyForm::kLeastLogits: they are cut into two
// blocks of 256.
TEST(Stage, ChunksOfTheHeadAddUp) {
  ModelConfig config = test::tiny_llama();
  config.layers = 1;
  config.hidden = config.ffn_hidden = 8;
  config.vocab_size = 70001;
  config.seq_length = config.max_positions = 16;
  TinyModel whole(config), halves(config);
  whole.scratch = make_arena(*whole.backend, "scratch", size_t{200} << 20);
  halves.scratch = make_arena(*halves.backend, "scratch", size_t{200} << 20);
  const HostBatch batch(config, 16, 32);
  ASSERT_GT(int64_t{512} * config.vocab_size * 4, VocabularyForm::kLeastLogits);
  const double loss = whole.loss(batch.view(), true);
  EXPECT_GE(whole.scratch.peak(), size_t{256} * 70001 * 4);
  EXPECT_LE(whole.scratch.peak(), size_t{256} * 70001 * 4 + (size_t{1} << 20));

  double sum = 0;
  for (int64_t half = 0; half < 2; ++half) {
    HostBatch part(config, 16, 16);
    for (size_t row = 0; row < 16; ++row)
      for (size_t column = 0; column < 16; ++column) {
        const size_t from = row * 32 + static_cast<size_t>(half) * 16 + column;
        part.tokens[row * 16 + column] = batch.tokens[from];
        part.labels[row * 16 + column] = batch.labels[from];
        part.mask[row * 16 + column] = batch.mask[from];
      }
    Microbatch view = part.view();
    view.grad_scale = batch.view().grad_scale;
    sum += halves.loss(view, true);
  }
  EXPECT_NEAR(loss, sum, 1e-6);
  const std::vector<float> a = whole.read(whole.store.grads()), b = halves.read(halves.store.grads());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6);
}

TEST(Stage, GradientsOfMicrobatchesAddUp) {
  TinyModel once(test::tiny_gpt2()), twice(test::tiny_gpt2());
  const HostBatch batch(once.stage.config(), 7, 3);
  once.loss(batch.view(), true);
  twice.loss(batch.view(), true);
  twice.loss(batch.view(), true);
  const std::vector<float> a = once.read(once.store.grads()), b = twice.read(twice.store.grads());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(2 * a[i], b[i], 1e-6);
}

TEST(Stage, FrozenParametersGetNoGradientAndTheOthersTheirs) {
  const ModelConfig config = test::tiny_gpt2();
  TinyModel all(config);
  const HostBatch batch(config, 7, 3);
  all.loss(batch.view(), true);

  TinyModel some(config);
  ParamTable table;
  const Stage stage(config, {.count = 2}, {}, table);
  for (Param& param : table.all()) param.trainable = param.name.find("layers.1.") != std::string::npos;
  const ParamStore store(table, some.stream);
  initialize(table, some.stream, 5);
  stage.forward(some.ctx(true), batch.view(), {}, some.tape);
  stage.backward(some.ctx(true), batch.view(), {}, some.tape);
  for (const Param& param : table.all()) {
    EXPECT_EQ(static_cast<bool>(param.grad), param.trainable) << param.name;
    if (param.trainable) {
      EXPECT_EQ(some.read(param.grad), all.read(all.table.find(param.name)->grad)) << param.name;
    }
  }
}

}  // namespace
}  // namespace megalith

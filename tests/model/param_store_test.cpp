#include "libcore/model/param_store.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::TinyModel;

struct Moments {
  double mean = 0, std = 0, kurtosis = 0;
};
Moments moments(const std::vector<float>& x) {
  Moments m;
  double fourth = 0;
  const auto n = static_cast<double>(x.size());
  for (const float v : x) m.mean += v / n;
  for (const float v : x) {
    const double d = v - m.mean;
    m.std += d * d / n;
    fourth += d * d * d * d / n;
  }
  m.kurtosis = fourth / (m.std * m.std);
  m.std = std::sqrt(m.std);
  return m;
}

ModelConfig wide() {
  ModelConfig config = test::tiny_llama();
  config.hidden = 256;
  config.ffn_hidden = 320;
  config.init_std = 0.02;
  return config;
}

TEST(ParamTable, FindsAParameterByItsOnlyName) {
  ParamTable table;
  for (const char* name : {"a", "b", "c"}) table.add({.name = name, .global = {2}});
  const ParamTable copied = table;  // whose parameters are others
  EXPECT_EQ(table.find("b"), &table.all()[1]);
  EXPECT_EQ(table.find("d"), nullptr);
  EXPECT_EQ(table.find(""), nullptr);
  EXPECT_EQ(copied.all().size(), 3U);
  EXPECT_THROW(table.add({.name = "b", .global = {3}}), Error);
  EXPECT_EQ(table.all().size(), 3U);
}

TEST(ParamStore, PlacesParametersInOrderAndAligned) {
  TinyModel model(test::tiny_gpt2());
  int64_t end = 0;
  for (const Param& param : model.table.all()) {
    if (!param.tie.empty()) continue;
    const int64_t at = model.store.offset(param);
    EXPECT_EQ(at % ParamStore::kAlign, 0);
    EXPECT_GE(at, end) << param.name;
    EXPECT_LT(at - end, ParamStore::kAlign) << param.name;
    EXPECT_EQ(param.grad.as<float>(), model.store.grads().as<float>() + at);
    end = at + param.value.elements();
  }
  EXPECT_GE(model.store.elements(), end);
}

TEST(ParamStore, ATiedHeadIsTheEmbedding) {
  TinyModel model(test::tiny_gpt2());
  const Param* const words = model.table.find("embedding.word_embeddings.weight");
  const Param* const head = model.table.find("output_layer.weight");
  EXPECT_EQ(head->tie, words->name);
  EXPECT_EQ(head->value.data, words->value.data);
  EXPECT_EQ(head->grad.data, words->grad.data);
}

// Buckets hold whole layers, so there may be fewer buckets than --ddp-num-buckets, but never more.
TEST(ParamStore, MakesAtMostAsManyBucketsAsAsked) {
  TinyModel model(test::tiny_gpt2());
  const auto buckets = [&](int count) {
    return ParamStore(model.table, model.stream, {.buckets = count}).buckets().size();
  };
  EXPECT_EQ(buckets(1), 1u);
  EXPECT_LE(buckets(3), 3u);
  EXPECT_GT(buckets(1000), buckets(3));
  const ParamStore many(model.table, model.stream, {.buckets = 1000});
  int64_t end = 0;
  for (const Bucket& bucket : many.buckets()) end = std::max(end, bucket.end);
  EXPECT_EQ(end, many.elements());
}

// By hand: words 23*12, positions 9*12; per layer norms 4*12, qkv 48*(12+1), proj 12*(16+1), fc1 20*(12+1),
// fc2 12*(20+1); final norm 2*12.
TEST(ParamStore, CountsEveryParameterOnce) {
  TinyModel model(test::tiny_gpt2());
  const int64_t layer = 4 * 12 + 48 * 13 + 12 * 17 + 20 * 13 + 12 * 21;
  EXPECT_EQ(model.store.parameters(), 23 * 12 + 9 * 12 + 2 * layer + 2 * 12);
  EXPECT_EQ(model.table.elements(), model.store.parameters());
}

TEST(Initialize, DrawsNormalNumbersAndKeepsConstants) {
  const ModelConfig config = wide();
  TinyModel model(config);
  for (const Param& param : model.table.all()) {
    const std::vector<float> values = model.read(param.value);
    if (param.name.ends_with("norm.weight")) {
      for (const float v : values) ASSERT_EQ(v, 1) << param.name;
      continue;
    }
    const bool output =
        param.name.ends_with("linear_proj.weight") || param.name.ends_with("linear_fc2.weight");
    const double expected = output ? 0.02 / std::sqrt(4.0) : 0.02;
    const Moments m = moments(values);
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(m.mean, 0, 4 * expected / std::sqrt(n)) << param.name;
    EXPECT_NEAR(m.std, expected, 4 * expected / std::sqrt(2 * n)) << param.name;
    EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(24 / n)) << param.name;
  }
}

TEST(Initialize, DependsOnSeedAndNameAlone) {
  TinyModel a(test::tiny_llama()), b(test::tiny_llama());
  EXPECT_EQ(a.read(a.store.values()), b.read(b.store.values()));
  initialize(b.table, b.stream, 6);
  EXPECT_NE(a.read(a.store.values()), b.read(b.store.values()));
  EXPECT_NE(a.read(a.table.find("decoder.layers.0.mlp.linear_fc1.weight")->value),
            a.read(a.table.find("decoder.layers.1.mlp.linear_fc1.weight")->value));
}

// Expects the elements of a sharded parameter's part to equal those of the whole parameter at the same
// places.
void expect_part_of(const TinyModel& model, const Param& whole, const Param& part) {
  const std::vector<float> all = model.read(whole.value), mine = model.read(part.value);
  const int axis = part.shard_axis == kWhole ? 0 : part.shard_axis;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= whole.global[i];
  for (int i = axis + 1; i < whole.global.rank; ++i) inner *= whole.global[i];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t row = 0; row < part.local[axis]; ++row)
      for (int64_t i = 0; i < inner; ++i) {
        const float value = mine[static_cast<size_t>((o * part.local[axis] + row) * inner + i)];
        const int64_t there = part.offset + row;
        const float expected = there < whole.global[axis]
                                   ? all[static_cast<size_t>((o * whole.global[axis] + there) * inner + i)]
                                   : 0.0f;
        ASSERT_EQ(value, expected) << whole.name;
      }
}

TEST(Initialize, IsTheSameUnderEveryLayout) {
  ModelConfig config = test::tiny_llama();
  config.vocab_divisor = 8;  // pads 23 ids to 32: the second rank has 7 real rows and 9 of padding
  TinyModel model(config);
  for (const int rank : {0, 1}) {
    ParamTable table;
    const Stage stage(config, {.count = 2}, {.rank = rank, .size = 2}, table);
    const ParamStore store(table, model.stream);
    initialize(table, model.stream, 5);
    for (const Param& part : table.all()) expect_part_of(model, *model.table.find(part.name), part);
    EXPECT_EQ(table.find("output_layer.weight")->local, (Shape{16, 12}));
    EXPECT_EQ(table.find("decoder.layers.0.mlp.linear_fc1.weight")->local, (Shape{2, 10, 12}));
    EXPECT_EQ(table.find("decoder.layers.0.self_attention.linear_qkv.weight")->local, (Shape{1, 4, 4, 12}));
    EXPECT_EQ(table.find("decoder.layers.0.mlp.linear_fc2.weight")->local, (Shape{12, 10}));
  }
}

TEST(ParamStore, FrozenParametersHaveNoGradientAndAPlaceOfTheirOwn) {
  const ModelConfig config = test::tiny_llama();
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  ParamTable table(
      {.frozen = true,
       .rank = 2,
       .targets = {{.layer = "self_attention.linear_qkv", .part = "v_proj", .first = 3, .slots = 1},
                   {.layer = "mlp.linear_fc2", .part = "down_proj"}}});
  const Stage stage(config, {.count = 2}, {}, table);
  const ParamStore store(table, stream);
  int64_t trained = 0;
  for (const Param& param : table.all()) {
    EXPECT_EQ(param.trainable, param.name.find(".lora_") != std::string::npos) << param.name;
    EXPECT_EQ(static_cast<bool>(param.grad), param.trainable) << param.name;
    EXPECT_TRUE(param.value) << param.name;
    if (param.trainable) trained += param.local.elements();
  }
  EXPECT_EQ(store.trained(), trained);
  EXPECT_GT(store.parameters(), 2 * trained);
  EXPECT_LT(store.elements(), trained + 16 * ParamStore::kAlign);
  EXPECT_LE(store.grad_bytes(), static_cast<size_t>(store.elements()) * sizeof(float) + 256);
  // v_proj is one of the 4 slots of a group, so B is [groups, 1, head, rank].
  const Param* const b = table.find("decoder.layers.0.self_attention.linear_qkv.lora_B.v_proj");
  ASSERT_NE(b, nullptr);
  Shape wanted = table.find("decoder.layers.0.self_attention.linear_qkv.weight")->global;
  wanted[1] = 1;
  wanted[3] = 2;
  EXPECT_EQ(b->global, wanted);
}

}  // namespace
}  // namespace megalith

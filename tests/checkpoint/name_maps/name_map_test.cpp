#include "libcore/checkpoint/name_maps/name_map.h"

#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/families/family.h"
#include "libcore/checkpoint/views/renamed_file.h"
#include "tests/support/name_maps.h"

namespace megalith {
namespace {

ModelConfig small(bool llama) {
  ModelConfig c;
  c.layers = 3;
  c.hidden = 12;
  c.heads = 6;
  c.kv_channels = 2;
  c.group_query = llama;
  c.query_groups = llama ? 2 : 6;
  c.ffn_hidden = 20;
  c.max_positions = 9;
  c.vocab_size = 17;
  c.untied_head = llama;
  c.linear_bias = !llama;
  if (llama) c.norm = Normalization::kRmsNorm;
  return c;
}

/// With the family's parts.
ModelConfig small(const Family& family) {
  ModelConfig c = small(family.gated);
  c.norm = family.norm;
  c.qk_layernorm = family.head_norms;
  c.qk_norm_all_heads = family.joint_norms;
  c.norm_placement = family.norm_places;
  c.parallel_residual = family.parallel_norms == 1;
  c.parallel_norms = family.parallel_norms;
  return c;
}

struct Tensor {
  Shape shape;
  std::vector<float> values;
  explicit Tensor(Shape s, float first = 0) : shape(s), values(static_cast<size_t>(s.elements())) {
    std::iota(values.begin(), values.end(), first);
  }
  View view() { return {values.data(), DType::kF32, shape}; }
  float at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * shape.back() + column)];
  }
};

const RenamedTensor& named(const std::vector<RenamedTensor>& all, const std::string& ours) {
  for (const RenamedTensor& m : all)
    if (m.ours == ours) return m;
  throw std::runtime_error("no " + ours);
}

TEST(NameMap, PutsTheLayerInPlaceOfTheFirstSign) {
  EXPECT_EQ(with_layer("decoder.layers.#.mlp.linear_fc1.weight", 12),
            "decoder.layers.12.mlp.linear_fc1.weight");
  EXPECT_EQ(with_layer("output_layer.weight", 12), "output_layer.weight");
  EXPECT_EQ(with_layer("#.#", 0), "0.#");
}

using Values = std::map<std::string, std::pair<Shape, std::vector<float>>>;

// Compares blocks of a tensor in `file` with `ours`. Some blocks cut across groups, heads and halves of
// heads.
void expect_blocks(const TensorFile& file, const std::string& name, const Tensor& ours) {
  Shape offset = Box::whole({}, ours.shape).offset, extent = ours.shape;
  for (int axis = 0; axis < ours.shape.rank; ++axis)
    for (const auto& [from, to] : {std::pair<int64_t, int64_t>{0, 1}, {1, ours.shape[axis]}}) {
      Shape o = offset, e = extent;
      o[axis] = std::min(from, ours.shape[axis] - 1);
      e[axis] = std::max<int64_t>(to - o[axis], 1);
      Tensor got(e, -9), want(e);
      copy_block({ours.values.data(), DType::kF32, ours.shape}, o, want.view(), Box::whole({}, e).offset, e);
      file.read({name, ours.shape, o}, got.view());
      EXPECT_EQ(got.values, want.values) << name << " at " << o << " of " << e;
    }
}

TEST(NameMap, RoundTripsEveryTensorOfEveryFamily) {
  for (const Family& family : families()) {
    const NameMap* const map = &family.names;
    for (const bool biased : {false, true}) {
      ModelConfig config = small(family);
      config.linear_bias = biased;
      Values theirs;
      std::map<std::string, Tensor> ours;
      for (const RenamedTensor& m : renamed_tensors(*map, config)) {
        const Tensor& tensor = ours.emplace(m.ours, Tensor(m.shape, 1)).first->second;
        int64_t elements = 0;
        for (size_t part = 0; part < m.theirs.size(); ++part) {
          Tensor there(m.theirs[part].shape, -5000);
          test::to_theirs(m, part, {tensor.values.data(), DType::kF32, m.shape}, there.view());
          elements += there.shape.elements();
          theirs[m.theirs[part].name] = {there.shape, there.values};
        }
        EXPECT_EQ(elements, m.shape.elements()) << m.ours;
      }
      const RenamedTensorFile file(std::make_unique<test::MemoryTensors>(theirs), *map, config);
      EXPECT_EQ(file.tensors().size(), ours.size());
      for (const auto& [name, tensor] : ours) {
        Tensor back(tensor.shape, -1000);
        file.read(Box::whole(name, tensor.shape), back.view());
        EXPECT_EQ(back.values, tensor.values) << name;
        expect_blocks(file, name, tensor);
      }
    }
  }
}

TEST(NameMap, NamesAreUniqueOnBothSides) {
  for (const Family& family : families()) {
    std::set<std::string> ours, theirs;
    for (const RenamedTensor& m : renamed_tensors(family.names, small(family))) {
      EXPECT_TRUE(ours.insert(m.ours).second) << m.ours;
      for (const TheirTensor& t : m.theirs) EXPECT_TRUE(theirs.insert(t.name).second) << t.name;
    }
  }
}

// Compares every query, key and value row of LLaMA with its place, computed by hand: our layout is
// [group][its q heads, k, v][head row].
TEST(NameMap, SplitsGroupedQkvByHead) {
  const ModelConfig c = small(true);
  const auto all = renamed_tensors(llama_names(), c);
  const RenamedTensor& m = named(all, "decoder.layers.1.self_attention.linear_qkv.weight");
  ASSERT_EQ(m.shape, (Shape{2, 5, 2, 12}));
  ASSERT_EQ(m.theirs.size(), 3u);
  EXPECT_EQ(m.theirs[0].name, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(m.theirs[2].name, "model.layers.1.self_attn.v_proj.weight");
  Tensor ours(m.shape), q(m.theirs[0].shape), k(m.theirs[1].shape), v(m.theirs[2].shape);
  ASSERT_EQ(q.shape, (Shape{12, 12}));
  ASSERT_EQ(k.shape, (Shape{4, 12}));
  test::to_theirs(m, 0, ours.view(), q.view());
  test::to_theirs(m, 1, ours.view(), k.view());
  test::to_theirs(m, 2, ours.view(), v.view());
  const auto packed = [&](int64_t group, int64_t slot, int64_t row, int64_t column) {
    return ours.values[static_cast<size_t>(((group * 5 + slot) * 2 + row) * 12 + column)];
  };
  for (int64_t column = 0; column < 12; ++column)
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t head = 0; head < 6; ++head)
        EXPECT_EQ(q.at(head * 2 + row, column), packed(head / 3, head % 3, row, column));
      for (int64_t group = 0; group < 2; ++group) {
        EXPECT_EQ(k.at(group * 2 + row, column), packed(group, 3, row, column));
        EXPECT_EQ(v.at(group * 2 + row, column), packed(group, 4, row, column));
      }
    }
}

TEST(NameMap, JoinsQkvOfGpt2AsQueriesKeysValuesInColumns) {
  const auto all = renamed_tensors(gpt2_names(), small(false));
  const RenamedTensor& weight = named(all, "decoder.layers.2.self_attention.linear_qkv.weight");
  const RenamedTensor& bias = named(all, "decoder.layers.2.self_attention.linear_qkv.bias");
  ASSERT_EQ(weight.theirs[0].name, "transformer.h.2.attn.c_attn.weight");
  ASSERT_EQ(weight.theirs[0].shape, (Shape{12, 36}));
  ASSERT_EQ(bias.theirs[0].shape, (Shape{36}));
  Tensor ours(weight.shape), theirs(weight.theirs[0].shape), our_bias(bias.shape),
      their_bias(bias.theirs[0].shape);
  test::to_theirs(weight, 0, ours.view(), theirs.view());
  test::to_theirs(bias, 0, our_bias.view(), their_bias.view());
  for (int64_t kind = 0; kind < 3; ++kind)
    for (int64_t head = 0; head < 6; ++head)
      for (int64_t row = 0; row < 2; ++row) {
        const int64_t our_row = (head * 3 + kind) * 2 + row, column = kind * 12 + head * 2 + row;
        EXPECT_EQ(their_bias.values[static_cast<size_t>(column)],
                  our_bias.values[static_cast<size_t>(our_row)]);
        for (int64_t in = 0; in < 12; ++in)
          EXPECT_EQ(theirs.at(in, column), ours.values[static_cast<size_t>(our_row * 12 + in)]);
      }
}

TEST(NameMap, StacksQkvOfPhi3AndItsGatesAndUps) {
  const auto all = renamed_tensors(phi3_names(), small(true));
  const RenamedTensor& qkv = named(all, "decoder.layers.1.self_attention.linear_qkv.weight");
  ASSERT_EQ(qkv.theirs.size(), 1u);
  EXPECT_EQ(qkv.theirs[0].name, "model.layers.1.self_attn.qkv_proj.weight");
  ASSERT_EQ(qkv.theirs[0].shape, (Shape{20, 12}));
  Tensor ours(qkv.shape), theirs(qkv.theirs[0].shape);
  test::to_theirs(qkv, 0, ours.view(), theirs.view());
  for (int64_t row = 0; row < 20; ++row) {
    // Six queries, two keys, two values of two rows each; of us, each group has three queries, key and value.
    const int64_t head = row / 2, group = head < 6 ? head / 3 : head % 2;
    const int64_t slot = head < 6 ? head % 3 : 3 + (head - 6) / 2;
    EXPECT_EQ(theirs.at(row, 5), static_cast<float>(((group * 5 + slot) * 2 + row % 2) * 12 + 5)) << row;
  }
  const RenamedTensor& gates = named(all, "decoder.layers.1.mlp.linear_fc1.weight");
  EXPECT_EQ(gates.theirs[0].name, "model.layers.1.mlp.gate_up_proj.weight");
  EXPECT_EQ(gates.theirs[0].shape, (Shape{40, 12}));
}

TEST(NameMap, SplitsGateFromUp) {
  const auto all = renamed_tensors(llama_names(), small(true));
  const RenamedTensor& m = named(all, "decoder.layers.0.mlp.linear_fc1.weight");
  Tensor ours(m.shape), gate({20, 12}), up({20, 12});
  ASSERT_EQ(m.theirs[1].name, "model.layers.0.mlp.up_proj.weight");
  ASSERT_EQ(m.theirs[1].shape, up.shape);
  test::to_theirs(m, 0, ours.view(), gate.view());
  test::to_theirs(m, 1, ours.view(), up.view());
  EXPECT_EQ(gate.values, Tensor({20, 12}, 0).values);
  EXPECT_EQ(up.values, Tensor({20, 12}, 240).values);
}

TEST(NameMap, MarksTheBiasesThatGpt2HasAndTheModelDoesNot) {
  ModelConfig config = small(false);
  config.qkv_bias = false;
  const auto all = renamed_tensors(gpt2_names(), config);
  EXPECT_TRUE(named(all, "decoder.layers.0.self_attention.linear_qkv.bias").absent);
  EXPECT_FALSE(named(all, "decoder.layers.0.self_attention.linear_proj.bias").absent);
  EXPECT_EQ(all.size(), 3u * 12 + 4);
  config = small(true);
  EXPECT_EQ(renamed_tensors(llama_names(), config).size(), 3u * 6 + 3);
}

}  // namespace
}  // namespace megalith

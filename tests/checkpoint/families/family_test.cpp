#include "libcore/checkpoint/families/family.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// A small model with the parts that LLaMA's family has.
ModelConfig llama() {
  ModelConfig c;
  c.layers = 2;
  c.hidden = 12;
  c.heads = 4;
  c.kv_channels = 4;
  c.group_query = true;
  c.query_groups = 2;
  c.ffn_hidden = 20;
  c.vocab_size = 17;
  c.position = PositionEmbedding::kRope;
  c.norm = Normalization::kRmsNorm;
  c.swiglu = true;
  c.linear_bias = false;
  return c;
}

std::string type_of(const ModelConfig& config) {
  return family_of(config).names.family;
}

TEST(Family, IsTheFirstThatHasTheModelsParts) {
  EXPECT_EQ(type_of(llama()), "llama");
  ModelConfig c = llama();
  c.linear_bias = true;
  EXPECT_EQ(type_of(c), "llama");
  c = llama();
  c.qkv_bias = true;
  EXPECT_EQ(type_of(c), "qwen2");
  c.sliding_window = 3;
  EXPECT_EQ(type_of(c), "qwen2");
  c = llama();
  c.sliding_window = 3;
  EXPECT_EQ(type_of(c), "mistral");
  c = llama();
  c.qk_layernorm = true;
  EXPECT_EQ(type_of(c), "qwen3");
  c.sliding_window = 3;
  EXPECT_EQ(type_of(c), "qwen3");
  c = llama();
  c.no_rope_freq = 4;
  EXPECT_EQ(type_of(c), "smollm3");
  EXPECT_EQ(misfits(*find_family("llama"), c), std::vector<std::string>{"--no-rope-freq 4"});
  ModelConfig gpt2;
  gpt2.heads = 4;
  gpt2.hidden = 12;
  gpt2.kv_channels = 3;
  EXPECT_EQ(type_of(gpt2), "gpt2");
}

TEST(Family, SaysWhichOptionsItCannotExpress) {
  const Family& qwen3 = *find_family("qwen3");
  EXPECT_EQ(misfits(qwen3, llama()), std::vector<std::string>{"no --qk-layernorm"});
  ModelConfig c = llama();
  c.qk_layernorm = true;
  EXPECT_TRUE(misfits(qwen3, c).empty());
  EXPECT_EQ(misfits(*find_family("llama"), c), std::vector<std::string>{"--qk-layernorm"});
  c.qkv_bias = true;
  EXPECT_EQ(misfits(qwen3, c), std::vector<std::string>{"--add-qkv-bias"});
  c.qkv_bias = false;
  c.rotary_percent = 0.5;
  EXPECT_EQ(misfits(qwen3, c), std::vector<std::string>{"--rotary-percent 0.5"});
  EXPECT_THROW(family_of(c), Error);
  EXPECT_EQ(misfits(*find_family("gpt2"), llama()),
            (std::vector<std::string>{"--position-embedding-type rope", "--normalization RMSNorm", "--swiglu",
                                      "--num-query-groups 2", "--kv-channels 4"}));
}

TEST(Families, HaveOneRowForEachType) {
  std::set<std::string> types;
  for (const Family& family : families()) {
    EXPECT_TRUE(types.insert(family.names.family).second) << family.names.family;
    EXPECT_EQ(find_family(family.names.family), &family);
    EXPECT_FALSE(std::string(family.title).empty());
  }
  EXPECT_EQ(find_family("bert"), nullptr);
  EXPECT_EQ(family_types(), "gpt2, llama, qwen2, mistral, qwen3, smollm3");
}

}  // namespace
}  // namespace megalith

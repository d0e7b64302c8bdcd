#include "libcore/checkpoint/families/family.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::tiny_llama;

std::string type_of(const ModelConfig& config) {
  return family_of(config).names.family;
}

TEST(Family, IsTheFirstThatHasTheModelsParts) {
  struct Case {
    const char* type;
    void (*change)(ModelConfig&);  // of a model with LLaMA's parts
  };
  for (const auto& [type, change] : {
           Case{"llama", [](ModelConfig&) {}},
           Case{"llama", [](ModelConfig& c) { c.linear_bias = true, c.qkv_bias = true; }},
           Case{"qwen2", [](ModelConfig& c) { c.qkv_bias = true; }},
           Case{"qwen2", [](ModelConfig& c) { c.qkv_bias = true, c.sliding_window = 3; }},
           Case{"mistral", [](ModelConfig& c) { c.sliding_window = 3; }},
           Case{"qwen3", [](ModelConfig& c) { c.qk_layernorm = true; }},
           Case{"qwen3", [](ModelConfig& c) { c.qk_layernorm = true, c.sliding_window = 3; }},
           Case{"smollm3", [](ModelConfig& c) { c.no_rope_freq = 4; }},
           Case{"qwen2", [](ModelConfig& c) { c.qkv_bias = true, c.sliding_window = 3, c.full_layers = 1; }},
           Case{"granite", [](ModelConfig& c) { c = test::tiny_granite(); }},
           Case{"olmo2", [](ModelConfig& c) { c = test::tiny_olmo2(); }},
           Case{"olmo3", [](ModelConfig& c) { c = test::tiny_olmo2(), c.sliding_window = 3; }},
           Case{"olmo3",
                [](ModelConfig& c) {
                  c = test::tiny_olmo2();
                  c.sliding_window = 3;
                  c.window_skip_freq = 2;
                }},
       }) {
    ModelConfig c = tiny_llama();
    change(c);
    EXPECT_EQ(type_of(c), type);
  }
  ModelConfig gpt2 = test::tiny_gpt2();
  gpt2.kv_channels = gpt2.hidden / gpt2.heads;
  EXPECT_EQ(type_of(gpt2), "gpt2");
}

TEST(Family, SaysWhichOptionsItCannotExpress) {
  const Family& qwen3 = *find_family("qwen3");
  EXPECT_EQ(misfits(qwen3, tiny_llama()), std::vector<std::string>{"no --qk-layernorm"});
  ModelConfig c = tiny_llama();
  c.qk_layernorm = true;
  EXPECT_TRUE(misfits(qwen3, c).empty());
  EXPECT_EQ(misfits(*find_family("llama"), c), std::vector<std::string>{"--qk-layernorm"});
  c.qkv_bias = true;
  EXPECT_EQ(misfits(qwen3, c), std::vector<std::string>{"--add-qkv-bias"});
  c.qkv_bias = false;
  c.rotary_percent = 0.5;
  EXPECT_EQ(misfits(qwen3, c), std::vector<std::string>{"--rotary-percent 0.5"});
  EXPECT_THROW(family_of(c), Error);
  c = tiny_llama();
  c.no_rope_freq = 4;
  EXPECT_EQ(misfits(*find_family("llama"), c), std::vector<std::string>{"--no-rope-freq 4"});
  c = tiny_llama();
  c.sliding_window = 3;
  c.window_skip_freq = 2;
  EXPECT_EQ(misfits(*find_family("mistral"), c), std::vector<std::string>{"--window-attn-skip-freq 2"});
  c.window_skip_freq = 0;
  c.full_layers = 1;
  EXPECT_EQ(misfits(*find_family("mistral"), c), std::vector<std::string>{"--max-window-layers 1"});
  EXPECT_EQ(misfits(*find_family("qwen3"), test::tiny_olmo2()),
            (std::vector<std::string>{"--norm-placement after", "--qk-norm-all-heads"}));
  c = test::tiny_olmo2();
  c.rotary_interpolation = 2;
  EXPECT_EQ(misfits(*find_family("olmo3"), c),
            std::vector<std::string>{"--rotary-seq-len-interpolation-factor"});
  EXPECT_EQ(misfits(*find_family("llama"), test::tiny_granite()),
            (std::vector<std::string>{"--embedding-multiplier 1.5", "--residual-multiplier 0.6",
                                      "--attention-multiplier 0.3", "--logits-scaling 1.25"}));
  EXPECT_EQ(misfits(*find_family("gpt2"), tiny_llama()),
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
  EXPECT_EQ(family_types(), "gpt2, llama, qwen2, mistral, qwen3, smollm3, olmo2, olmo3, granite");
}

}  // namespace
}  // namespace megalith

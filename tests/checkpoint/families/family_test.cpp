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
           Case{"phi3", [](ModelConfig& c) { c.hf_model_type = "phi3"; }},
           Case{"mistral", [](ModelConfig& c) { c.hf_model_type = "mistral"; }},
           Case{"llama", [](ModelConfig& c) { c.rope_type = RopeType::kYarn; }},
           Case{"starcoder2", [](ModelConfig& c) { c.norm = Normalization::kLayerNorm, c.swiglu = false; }},
           Case{"stablelm", [](ModelConfig& c) { c.norm = Normalization::kLayerNorm; }},
           Case{"stablelm", [](ModelConfig& c) { c.norm = Normalization::kLayerNorm, c.qkv_bias = true; }},
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
    c.kv_channels = c.hidden / c.heads;  // some families have no other heads
    change(c);
    EXPECT_EQ(type_of(c), type);
  }
  ModelConfig gpt2 = test::tiny_gpt2();
  gpt2.kv_channels = gpt2.hidden / gpt2.heads;
  EXPECT_EQ(type_of(gpt2), "gpt2");
  ModelConfig phi3 = tiny_llama(), neox = test::tiny_gpt_neox();
  phi3.kv_channels = phi3.hidden / phi3.heads;
  phi3.rotary_percent = 0.5;
  EXPECT_EQ(type_of(phi3), "phi3");
  neox.kv_channels = neox.hidden / neox.heads;
  EXPECT_EQ(type_of(neox), "gpt_neox");
  neox.rotary_percent = 1;
  neox.hf_model_type = "falcon";
  EXPECT_EQ(std::string(family_of(neox).variant.key), "new_decoder_architecture");
  EXPECT_TRUE(family_of(neox).variant.value);
  neox.parallel_norms = neox.query_groups = 1;
  neox.group_query = true;
  neox.hf_model_type.reset();
  EXPECT_EQ(type_of(neox), "falcon");
  EXPECT_FALSE(family_of(neox).variant.value);
}

TEST(Family, IsRefusedIfItsNameDoesNotFitTheModel) {
  const auto complaint = [](const ModelConfig& config) {
    Problems problems;
    check_model_type(config, problems);
    return problems.text("; ");
  };
  ModelConfig c = tiny_llama();
  EXPECT_EQ(complaint(c), "");
  c.hf_model_type = "bert";
  EXPECT_EQ(complaint(c).find("--hf-model-type \"bert\": wanted one of gpt2, llama, "), 0U) << complaint(c);
  c.hf_model_type = "phi3";
  c.kv_channels = c.hidden / c.heads;
  EXPECT_EQ(complaint(c), "");
  c.rope_scaling = true;
  EXPECT_EQ(complaint(c),
            "--hf-model-type phi3: Phi-3 does not express --use-rope-scaling; leave one of them out");
  EXPECT_THROW(family_of(c), Error);
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
    const bool first = types.insert(family.names.family).second;
    EXPECT_TRUE(first || family.variant.key) << family.names.family;
    if (first) {
      EXPECT_EQ(find_family(family.names.family), &family);
    }
    EXPECT_FALSE(std::string(family.title).empty());
  }
  EXPECT_EQ(find_family("bert"), nullptr);
  EXPECT_EQ(
      family_types(),
      "gpt2, llama, qwen2, mistral, qwen3, smollm3, phi3, starcoder2, stablelm, gpt_neox, falcon, olmo2, "
      "olmo3, granite");
}

}  // namespace
}  // namespace megalith

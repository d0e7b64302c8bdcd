#include "libcore/plan/shape/model_options.h"

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/options/cli.h"
#include "tests/plan/problems.h"
#include "tests/support/fates.h"

namespace megalith {
namespace {

/// The shape that the planner's own parser reads from a line of options.
ModelShape read(const std::string& line) {
  ModelShape shape;
  Options options("test", "Reads.");
  static constexpr OptionFate kKernels[] = {{.name = "moe-grouped-gemm"}};  // has no effect on a plan
  options.add("Model", shape).fates(test::maker(kKernels));
  EXPECT_FALSE(options.read(split(line, ' ')));
  options.check();
  return shape;
}

void expect_said_again(ModelShape m) {
  m.finish();
  const std::string line = model_options(m, true);
  EXPECT_EQ(to_json(read(line)).dump(), to_json(m).dump()) << line;
}

TEST(ModelOptions, SayAGptAgain) {
  ModelShape m = test::gpt(30, 768, 12, 1000, 50257);
  expect_said_again(m);
  m.bias_gelu_fusion = false;
  m.openai_gelu = true;
  m.qkv_bias = false;
  m.norm_epsilon = 1e-6;
  m.hidden_dropout = 0.05;
  m.attention_dropout = 0;
  m.init_std = 0.006;
  m.vocab_divisor = 64;
  m.kv_channels = 96;
  m.max_positions = 1024;
  expect_said_again(m);
  m.openai_gelu = false;
  m.hidden_act = "quick_gelu";
  expect_said_again(m);
  m.position = PositionEmbedding::kNone;
  m.linear_bias = false;
  m.qkv_bias = true;
  expect_said_again(m);
}

// Megatron's TransformerConfig wants a --no-rope-freq that divides the layers, or a list of as many members
// as there are layers, in which 1 marks one without rotation (arguments.py, no_rope_freq_type).
TEST(ModelOptions, MarkLayersWithoutRotationWhereTheirIntervalDoesNotDivideTheLayers) {
  ModelShape m = test::llama(36, 4096, 32, 8, 14336, 128256);
  m.no_rope_freq = 4;
  const auto has = [&](bool ours, const std::string& text) {
    return (model_options(m, ours) + ' ').find(" --no-rope-freq " + text + ' ') != std::string::npos;
  };
  EXPECT_TRUE(has(false, "4"));
  m.layers = 34;
  EXPECT_TRUE(has(true, "4"));
  EXPECT_TRUE(has(false, "\"([0]*3+[1])*8+[0]*2\""));
  m.layers = 3;
  EXPECT_TRUE(has(false, "\"[0]*3\""));
}

TEST(ModelOptions, SayALlamaAgain) {
  ModelShape m = test::llama(32, 4096, 32, 8, 14336, 128256);
  m.rotary_base = 500000;
  m.rotary_percent = 0.5;
  m.rope_scaling = true;
  m.rope_factor = 32;
  m.rope_low_freq = 2;
  m.rope_high_freq = 5.5;
  m.rope_original_positions = 4096;
  m.rotary_interpolation = 2;
  m.sliding_window = 8192;
  m.qk_layernorm = true;
  expect_said_again(m);
  m.rope_scaling = false;
  m.rotary_interpolation = 1;
  m.rotary_percent = 0.03125;  // of 128 channels
  m.rope_type = RopeType::kLongrope;
  m.rope_attention_factor = 1.25;
  m.rope_short_factors = "1,1.5";
  m.rope_long_factors = "2,64";
  m.parallel_residual = true;
  m.parallel_norms = 1;
  expect_said_again(m);
  m.rope_type = RopeType::kYarn;
  m.rope_short_factors = m.rope_long_factors = "";
  m.rope_beta_fast = 16;
  m.rope_beta_slow = 2;
  m.rope_truncate = false;
  m.parallel_residual = false;
  m.parallel_norms = 2;
  m.qk_layernorm = m.qk_norm_all_heads = true;
  m.norm_placement = NormPlacement::kBoth;
  m.window_skip_freq = 4;
  m.full_layers = 1;
  m.embedding_multiplier = 12;
  m.residual_multiplier = 0.22;
  m.attention_multiplier = 0.0078125;
  m.logits_scaling = 16;
  expect_said_again(m);
  ModelShape mistral = test::llama(32, 4096, 32, 8, 14336, 32000);
  mistral.hf_model_type = "mistral";
  expect_said_again(mistral);
  expect_said_again(test::mixtral(8).model);
}

// Megatron's --rotary-base and similar options accept only integers, not 1e+06. Values for which Megatron has
// no option are left out of its line.
TEST(ModelOptions, AreMegatrons) {
  ModelShape m = test::llama(32, 4096, 32, 8, 14336, 32000);
  m.rotary_base = 1e6;
  m.rope_low_freq = 2;
  m.sliding_window = 8192;
  m.finish();
  EXPECT_EQ(
      model_options(m),
      "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --seq-length "
      "4096 --max-position-embeddings 4096 --group-query-attention --num-query-groups 8 --swiglu "
      "--normalization RMSNorm --untie-embeddings-and-output-weights --disable-bias-linear "
      "--position-embedding-type rope --rotary-base 1000000 --attention-dropout 0 --hidden-dropout 0 "
      "--vocab-size 32000");
}

}  // namespace
}  // namespace megalith

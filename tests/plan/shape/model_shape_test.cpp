#include "libcore/plan/shape/model_shape.h"

#include <cmath>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

ModelShape mixture(int layers, int experts) {
  ModelShape m;
  m.layers = layers;
  m.hidden = 64;
  m.heads = 4;
  m.seq_length = 128;
  m.swiglu = true;
  m.experts = experts;
  m.finish();
  return m;
}

std::string complaints(ModelShape m) {
  m.finish();
  Problems problems;
  m.validate(problems);
  return problems.empty() ? "" : problems.text() + '\n';
}

TEST(LayerPattern, IsANumberOrAListAsInMegatron) {
  EXPECT_EQ(parse_layer_pattern("1"), (std::vector<int>{1}));
  EXPECT_EQ(parse_layer_pattern("3"), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(parse_layer_pattern("([0]*2+[1]*3)"), (std::vector<int>{0, 0, 1, 1, 1}));
  EXPECT_EQ(parse_layer_pattern("'([0, 1]*2+[1])*2'"), (std::vector<int>{0, 1, 0, 1, 1, 0, 1, 0, 1, 1}));
  for (const char* wrong : {"",      "0",
                            "-1",    "often",
                            "[2]",   "[1",
                            "[1]*",  "([1]",
                            "[1]+",  "[]",
                            "1+[1]", "[1]*99999999999",
                            "[1]]",  "((((((((((([1])))))))))))",
                            "1 2",   "'1'6",
                            "[0 1]", "[1]*1 2",
                            "''2''", "'2",
                            "'",     "' '"})
    EXPECT_TRUE(parse_layer_pattern(wrong).empty()) << wrong;
  EXPECT_EQ(parse_layer_pattern("\"2\""), (std::vector<int>{1, 0}));
  EXPECT_EQ(plain_layer_pattern(" '( [0] * 3 + [1 ,0]*1 )' "), "([0]*3+[1,0]*1)");
  EXPECT_EQ(plain_layer_pattern("1 2"), "1 2");
}

TEST(ModelShape, CountsTheLayersThatHaveNoExperts) {
  ModelShape m = mixture(7, 8);
  EXPECT_EQ(m.plain_layers(7), 0);
  m.layer_freq = "3";  // layers 0, 3 and 6 have experts
  m.finish();
  EXPECT_EQ(m.plain_layers(7), 4);
  EXPECT_EQ(m.plain_layers(1, 4), 2);
  m.layer_freq = "[0]*3+[1]*4";
  m.finish();
  EXPECT_EQ(m.plain_layers(7), 3);
  EXPECT_EQ(m.plain_layers(2, 5), 1);
  EXPECT_EQ(m.plain_layers(70), 3) << "a deeper model continues as it ends";
  m.experts.reset();
  EXPECT_EQ(m.plain_layers(7), 0) << "a dense model has one kind of layer";
}

// Harter 1961, Biometrika 48, table 1.
constexpr std::pair<int, double> kLargest[] = {{1, 0},        {2, 0.56419},  {4, 1.02938},  {8, 1.42360},
                                               {16, 1.76599}, {64, 2.34373}, {128, 2.59460}};

TEST(ModelShape, KnowsTheExpectedLargestOfNormalNumbers) {
  for (const auto& [count, largest] : kLargest) EXPECT_NEAR(expected_largest(count), largest, 1e-5) << count;
}

// Wang et al. 2024: of 64 experts up to 0.72 above the mean with an auxiliary loss, 0.04 with the router's
// bias. Of 16 it is 1.76599 / 2.34373 of that.
constexpr double kLoss16 = 1 + 0.72 * 1.76599 / 2.34373, kBias16 = 1 + 0.04 * 1.76599 / 2.34373;

TEST(ModelShape, KnowsHowFarExpertsAreFromBalance) {
  ModelShape m = mixture(4, 16);
  EXPECT_EQ(m.expert_imbalance().low, 1);
  EXPECT_NEAR(m.expert_imbalance().high, kLoss16, 1e-5);
  EXPECT_NEAR(mixture(4, 64).expert_imbalance().high, 1.72, 1e-12);
  m.capacity = 1.25;
  EXPECT_EQ(m.expert_imbalance().high, 1.25);
  m.expert_bias = true;
  EXPECT_NEAR(m.expert_imbalance().high, kBias16, 1e-5);
  m.forced_balance = true;
  EXPECT_EQ(m.expert_imbalance().high, 1);
}

// Without a loss, a bias or a capacity the balance is unknown, so the model is not planned.
TEST(ModelShape, KnowsWhatKeepsExpertsBalanced) {
  ModelShape m = mixture(4, 16);
  const std::string unknown =
      ": how unevenly tokens would then spread is not known; give "
      "--moe-router-enable-expert-bias";
  for (const char* type : {"none", "sinkhorn", "quantile_balancing"}) {
    m.balance = {type};
    EXPECT_NE(complaints(m).find(concat("--moe-router-load-balancing-type ", type, unknown)),
              std::string::npos)
        << complaints(m);
  }
  m.balance = {"none"};
  m.capacity = 2.5;
  EXPECT_EQ(complaints(m), "");
  EXPECT_EQ(m.expert_imbalance().high, 2.5);
  m.capacity.reset();
  m.expert_bias = true;
  EXPECT_EQ(complaints(m), "");
  EXPECT_NEAR(m.expert_imbalance().high, kBias16, 1e-5);
  m.balance = {"seq_aux_loss"};
  m.expert_bias = false;
  m.loss_coeffs = {"1e-4"};
  EXPECT_EQ(complaints(m), "");
  EXPECT_NEAR(m.expert_imbalance().high, kLoss16, 1e-5);
  m.loss_coeffs = {"0"};
  EXPECT_NE(complaints(m).find("--moe-router-load-balancing-type seq_aux_loss with --moe-aux-loss-coeff 0" +
                               unknown),
            std::string::npos)
      << complaints(m);
  m.loss_coeffs = {"1e-2", "few"};
  EXPECT_NE(complaints(m).find("--moe-aux-loss-coeff \"few\" is not a number"), std::string::npos);
  EXPECT_NE(
      complaints(m).find("--moe-aux-loss-coeff has 2 numbers for 1 of --moe-router-load-balancing-type"),
      std::string::npos);
}

// transformer_config.py's checks of groups.
TEST(ModelShape, ComplainsOfGroupsThatAreNone) {
  const auto of_groups = [](std::optional<int> groups, std::optional<int> chosen) {
    ModelShape m = mixture(4, 16);
    m.router_topk = 4;
    m.router_groups = groups;
    m.group_topk = chosen;
    return complaints(m);
  };
  EXPECT_EQ(of_groups(8, 2), "");
  EXPECT_EQ(of_groups(8, {}), "");
  EXPECT_EQ(of_groups({}, 2), "--moe-router-group-topk 2 needs --moe-router-num-groups\n");
  EXPECT_EQ(of_groups(3, 2), "--num-experts 16 is not a multiple of --moe-router-num-groups 3\n");
  EXPECT_EQ(of_groups(8, 9), "--moe-router-group-topk 9 is more than --moe-router-num-groups 8\n");
  EXPECT_EQ(of_groups(8, 1), "--moe-router-topk 4 is more than the 2 experts of --moe-router-group-topk 1\n");
}

TEST(ModelShape, SeveralExpertsOnARankEvenOut) {
  const ModelShape m = mixture(4, 16);
  EXPECT_NEAR(m.rank_imbalance(16).high, kLoss16, 1e-5);  // one expert each
  EXPECT_NEAR(m.rank_imbalance(4).high, 1 + 0.72 * 1.02938 / 2.34373 * std::sqrt(12.0 / 15 / 4), 1e-5);
  EXPECT_EQ(m.rank_imbalance(1).high, 1);  // a single rank has all tokens
  EXPECT_EQ(m.rank_imbalance(4).low, 1);
}

TEST(ModelShape, ComplainsOfWhatNoMixtureCanBe) {
  EXPECT_EQ(complaints(mixture(4, 8)), "");
  ModelShape m = mixture(4, 8);
  m.router_topk = 9;
  EXPECT_NE(complaints(m).find("--moe-router-topk 9 is more than --num-experts 8"), std::string::npos);
  m = mixture(4, 8);
  m.layer_freq = "sometimes";
  EXPECT_NE(complaints(m).find("--moe-layer-freq \"sometimes\" is neither"), std::string::npos);
  m.layer_freq = "[1]*5";
  EXPECT_NE(complaints(m).find("has 5 layers, --num-layers says 4"), std::string::npos);
  m.layer_freq = "[0]*4";
  EXPECT_NE(complaints(m).find("leaves no layer for --num-experts 8"), std::string::npos);
}

// A size that has no effect in the given model causes a complaint.
TEST(ModelShape, ComplainsOfSizesThatHaveNoMeaning) {
  ModelShape m = mixture(4, 8);
  m.experts.reset();
  m.expert_ffn = 0;
  EXPECT_EQ(complaints(m), "");
  m.shared_ffn = 64;
  m.router_topk = 4;
  m.layer_freq = "2";
  m.capacity = 1.5;
  m.query_rank = 32;
  for (const char* complaint :
       {"--moe-shared-expert-intermediate-size 64 needs --num-experts",
        "--moe-router-topk 4 needs --num-experts", "--moe-layer-freq \"2\" needs --num-experts",
        "--moe-expert-capacity-factor 1.5 needs --num-experts",
        "--q-lora-rank 32 needs --multi-latent-attention"})
    EXPECT_NE(complaints(m).find(complaint), std::string::npos) << complaints(m);
  m = mixture(4, 8);
  m.latent_attention = true;
  m.kv_channels = 0;  // not given
  EXPECT_EQ(complaints(m), "");
  m.group_query = true;
  m.query_groups = 2;
  EXPECT_NE(complaints(m).find("--multi-latent-attention and --group-query-attention exclude"),
            std::string::npos);
}

TEST(ModelShape, ComplainsOfChoicesThatHaveNoMeaning) {
  ModelShape m = mixture(4, 8);
  m.experts.reset();
  m.expert_ffn = 0;
  m.dispatcher = Dispatcher::kFlex;
  m.forced_balance = m.expert_bias = m.shared_gate = m.shared_overlap = m.deepep = true;
  m.balance = {"none"};
  m.loss_coeffs = {"0"};
  m.score_function = "sigmoid";
  m.router_groups = m.group_topk = 1;
  for (const char* option :
       {"moe-token-dispatcher-type flex", "moe-router-force-load-balancing", "moe-router-enable-expert-bias",
        "moe-shared-expert-gate", "moe-shared-expert-overlap", "moe-enable-deepep",
        "moe-router-load-balancing-type", "moe-aux-loss-coeff", "moe-router-score-function",
        "moe-router-num-groups", "moe-router-group-topk"})
    EXPECT_NE(complaints(m).find(concat("--", option, " needs --num-experts")), std::string::npos)
        << option << '\n'
        << complaints(m);
  m = mixture(4, 8);
  m.shared_gate = m.shared_overlap = m.deepep = true;
  for (const char* complaint : {"--moe-shared-expert-gate needs --moe-shared-expert-intermediate-size",
                                "--moe-shared-expert-overlap needs --moe-shared-expert-intermediate-size",
                                "--moe-enable-deepep needs --moe-token-dispatcher-type flex"})
    EXPECT_NE(complaints(m).find(complaint), std::string::npos) << complaints(m);
  m.shared_ffn = 64;
  m.dispatcher = Dispatcher::kFlex;
  EXPECT_EQ(complaints(m), "");
  m.latent_attention = true;
  m.kv_channels = 0;
  EXPECT_EQ(complaints(m), "");
  m.kv_channels = 128;  // equal to --v-head-dim
  EXPECT_EQ(complaints(m), "");
  m.kv_channels = 64;
  EXPECT_EQ(complaints(m),
            "--kv-channels 64 has no effect with --multi-latent-attention; leave it out, or give "
            "--v-head-dim\n");
}

TEST(ModelShape, NamesWhatOnlyMegatronTrains) {
  ModelShape m = mixture(4, 8);
  EXPECT_NE(beyond_our_trainer(m).find("--num-experts"), std::string::npos);
  m.experts.reset();
  m.qk_layernorm = true;
  EXPECT_EQ(beyond_our_trainer(m), "");
  m.predicted = 1;
  EXPECT_NE(beyond_our_trainer(m).find("--mtp-num-layers"), std::string::npos);
  m.latent_attention = true;
  EXPECT_NE(beyond_our_trainer(m).find("--multi-latent-attention"), std::string::npos);
}

}  // namespace
}  // namespace megalith

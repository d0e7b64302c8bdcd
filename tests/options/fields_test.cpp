#include "libcore/options/fields.h"

#include <optional>
#include <variant>

#include <gtest/gtest.h>

#include "libcore/config/pretrain_config.h"

namespace megalith {
namespace {

PretrainConfig unusual() {
  PretrainConfig c;
  c.model.layers = 3;
  c.model.norm_epsilon = 1e-6;
  c.model.position = PositionEmbedding::kRope;
  c.model.linear_bias = false;
  c.data.data_path = {"0.3", "a b", "0.7", "ü"};
  c.train.iters = 4000000000;
  c.train.exit_interval = std::nullopt;
  c.train.decay = LrDecay::kCosine;
  c.train.lr = 0.1;
  c.train.sample_prompt = "def f(x):\n\t\"q\"";
  c.checkpoint.load_optim = false;
  return c;
}

TEST(Fields, RoundTripThroughJsonText) {
  const Json json = to_json(unusual());
  PretrainConfig back;
  from_json(back, Json::parse(json.dump(2), "args.json"), "args.json");
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.model.position, PositionEmbedding::kRope);
  EXPECT_EQ(back.data.data_path, unusual().data.data_path);
  EXPECT_EQ(back.train.iters, 4000000000);
  EXPECT_EQ(back.train.exit_interval, std::nullopt);
  EXPECT_EQ(back.train.sample_prompt, unusual().train.sample_prompt);
}

TEST(Fields, AreNamedInJsonAsInMegatronsArgs) {
  const Json json = to_json(unusual());
  EXPECT_EQ(json["num_layers"], Json(3));
  EXPECT_EQ(json["add_bias_linear"], Json(false));
  EXPECT_EQ(json["position_embedding_type"], Json("rope"));
  EXPECT_EQ(json["override_opt_param_scheduler"], Json(false));
  EXPECT_TRUE(json["exit_interval"].is_null());
}

TEST(Fields, AreReadFromJsonUnderAliasesAndAmongStrangers) {
  ModelConfig model;
  from_json(
      model,
      Json::parse(
          R"({"layernorm_epsilon": 1e-6, "tokenizer_type": "X", "hidden_size": 8, "num_experts": null})",
          "a"),
      "a");
  EXPECT_EQ(model.norm_epsilon, 1e-6);
  EXPECT_EQ(model.hidden, 8);
  EXPECT_EQ(model.experts, std::nullopt);
}

struct Count {
  int count = 0;
  template <class V>
  void fields(V&& v) {
    v("count", count, "How many.", between(1, 8), word_value("all", -1), word_value("half", -2));
  }
};

TEST(Fields, TakeAWordForANumber) {
  Count c;
  Problems problems;
  const Field field = fields_of(c)[0];
  set_field(field, std::vector<std::string>{"half"}, {{}, "count"}, problems);
  EXPECT_EQ(c.count, -2);
  set_field(field, std::vector<std::string>{"3"}, {{}, "count"}, problems);
  EXPECT_EQ(c.count, 3);
  set_field(field, Json("all"), {"args.json", "count"}, problems);
  EXPECT_EQ(c.count, -1);
  EXPECT_TRUE(problems.empty());
  set_field(field, std::vector<std::string>{"-1"}, {{}, "count"}, problems);
  set_field(field, std::vector<std::string>{"most"}, {"args.json", "count"}, problems);
  EXPECT_EQ(problems.text(),
            "--count -1: wanted between 1 and 8\n"
            "args.json: count \"most\": wanted an integer or all or half");
  const Problem& in_file = problems.list().back();
  EXPECT_EQ(in_file.option, "count");
  EXPECT_EQ(in_file.found, "\"most\"");
  EXPECT_EQ(in_file.wanted, "an integer or all or half");
  EXPECT_EQ(in_file.place, "args.json");
  EXPECT_EQ(in_file.options, (std::vector<std::string>{"count"}));
}

TEST(Fields, RefuseJsonThatDoesNotFit) {
  ModelConfig model;
  try {
    from_json(
        model,
        Json::parse(
            R"({"num_layers": "many", "hidden_size": -1, "normalization": "rmsnorm", "swiglu": {}, "seq_length": 1.5})",
            "a"),
        "args.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_STREQ(error.what(),
                 "args.json: num_layers \"many\": wanted an integer\n  "
                 "args.json: hidden_size -1: wanted between 1 and 1048576\n  "
                 "args.json: seq_length \"1.5\": wanted an integer\n  "
                 "args.json: normalization \"rmsnorm\": wanted one of LayerNorm, RMSNorm\n  "
                 "args.json: swiglu {}: wanted one value");
  }
}

// fp32 would make infinity of such a number, an epsilon for example, without a word.
TEST(Fields, RefuseEachNumberThatFp32CannotHold) {
  int numbers = 0;
  PretrainConfig config;
  for (const Field& field : fields_of(config)) {
    if (!std::holds_alternative<double*>(field.slot) &&
        !std::holds_alternative<std::optional<double>*>(field.slot))
      continue;
    ++numbers;
    for (const double bad : {1e39, -1e39, 1e308}) {
      Problems problems;
      set_field(field, Json(bad), {"run.yaml:3", field.name}, problems);
      EXPECT_NE(problems.text().find("run.yaml:3: " + field.name), std::string::npos) << field.name << bad;
      EXPECT_NE(problems.text().find("wanted between -3.4e38 and 3.4e38"), std::string::npos)
          << problems.text();
    }
  }
  EXPECT_GT(numbers, 20);
}

TEST(Fields, DifferencesNameBothValues) {
  PretrainConfig theirs = unusual(), ours = unusual();
  EXPECT_TRUE(differences(theirs, ours).empty());
  ours.model.layers = 4;
  ours.train.exit_interval = 5;
  ours.data.data_path = {"x"};
  const auto list = differences(theirs, ours);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "num-layers");
  EXPECT_EQ(list[0].theirs, "3");
  EXPECT_EQ(list[0].ours, "4");
  EXPECT_EQ(list[1].name, "exit-interval");
  EXPECT_EQ(list[1].theirs, "");
  EXPECT_EQ(list[1].ours, "5");
  EXPECT_EQ(list[2].theirs, "0.3 a b 0.7 ü");
}

TEST(Fields, DifferencesLeaveOutWhatTheOtherDoesNotHave) {
  PretrainConfig ours = unusual();
  EXPECT_TRUE(differences(fields_of(ours), Json::parse(R"({"lr": 0.1, "train_iters": 4e9, "gone": 1})", "a"))
                  .empty());
  EXPECT_EQ(differences(fields_of(ours), Json::parse(R"({"lr": 0.2})", "a")).size(), 1u);
}

}  // namespace
}  // namespace megalith

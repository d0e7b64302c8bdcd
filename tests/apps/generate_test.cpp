// Expected texts: transformers' pipeline, tools/golden/make_generate_goldens.py.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/json.h"
#include "libcore/convert/convert.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

class GenerateApp : public testing::TestWithParam<const char*> {
 protected:
  GenerateApp() {
    std::filesystem::copy(test_data("parity/goldens/") + GetParam(), dir_ / "model");
    std::filesystem::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  }
  /// Only letters, digits and the like in `text`, no single quotes.
  CommandResult generate(const std::string& model, const std::string& text, const std::string& options) {
    return run_command(app("generate") + " --model " + model + " --prompt '" + text + "' " + options);
  }
  void expect_goldens(const std::string& model) {
    const Json goldens = Json::load(test_data("parity/goldens/") + GetParam() + ".json");
    for (size_t i = 0; i < goldens["prompts"].as_array().size(); ++i) {
      const CommandResult result = generate(model, goldens["prompts"].as_array()[i].as_string(),
                                            "--max-new-tokens 24 --temperature 0");
      EXPECT_EQ(result.code, 0) << result.err;
      EXPECT_EQ(result.out, goldens["texts"].as_array()[i].as_string() + "\n");
      EXPECT_NE(result.err.find("tokens/s"), std::string::npos) << result.err;
    }
  }
  TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Families, GenerateApp, testing::Values("generate-gpt2", "generate-llama"),
                         [](const auto& instance) { return std::string(instance.param).substr(9); });

TEST_P(GenerateApp, GreedyTextIsTransformers) {
  expect_goldens(dir_ / "model");
}

TEST_P(GenerateApp, ReadsOurCheckpoints) {
  export_checkpoint({.source = ModelSource(dir_ / "model"), .tokenizer_folder = dir_ / "model"},
                    dir_ / "ours");
  expect_goldens(dir_ / "ours");
}

TEST_P(GenerateApp, SamplesBySeed) {
  const auto sample = [&](int seed) {
    return generate(dir_ / "model", "The ",
                    concat("--temperature 1.5 --top-k 50 --top-p 0.95 --seed ", seed));
  };
  const CommandResult first = sample(1);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, sample(1).out);
  EXPECT_NE(first.out, sample(2).out);
}

TEST_P(GenerateApp, SaysWhatIsMissing) {
  const CommandResult nothing = generate(dir_ / "none", "a", "");
  EXPECT_EQ(nothing.code, 66) << nothing.err;
  const CommandResult no_prompt = run_command(app("generate") + " --model " + (dir_ / "model"));
  EXPECT_EQ(no_prompt.code, 64) << no_prompt.err;
  EXPECT_NE(no_prompt.err.find("--prompt"), std::string::npos) << no_prompt.err;
  const CommandResult too_long = generate(dir_ / "model", std::string(400, 'a'), "");
  EXPECT_EQ(too_long.code, 64);
  EXPECT_NE(too_long.err.find("64 positions"), std::string::npos) << too_long.err;
  std::filesystem::remove(dir_ / "model/tokenizer.json");
  const CommandResult mute = generate(dir_ / "model", "a", "");
  EXPECT_EQ(mute.code, 64) << mute.err;
  EXPECT_NE(mute.err.find("without a tokenizer"), std::string::npos) << mute.err;
}

}  // namespace
}  // namespace megalith::test

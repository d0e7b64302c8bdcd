#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "tests/apps/finetune/finetune_app.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

// Runs tools/demo/finetune, the recipe of docs/finetune.md, with a smaller model, fewer functions, and 60
// steps instead of 1500.
class FinetuneDemo : public FinetuneApp {
 protected:
  FinetuneDemo() {
    fs::create_directories(dir_ / "demo-out/text/AA");
    fs::rename(dir_ / "model", dir_ / "demo-out/hf");
    std::string lines;
    for (int i = 0; i < 96; ++i)
      lines += concat("{\"content\": \"def ", std::string(1, letter(i)), "_", std::string(1, letter(i / 3)),
                      std::string(static_cast<size_t>(1 + i / 9), letter(i / 2)), "(self, ",
                      std::string(1, letter(i)), "):\\n    pass\\n\"}\n");
    write_file(dir_ / "demo-out/text/AA/part_00", lines);
  }
  /// Runs the demo's command from the page.
  CommandResult demo(const std::string& environment) const {
    const std::vector<std::string> commands = doc_commands("finetune.md");
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [](const std::string& line) { return line.starts_with("tools/demo/"); });
    if (found == commands.end()) return {.code = -1, .out = {}, .err = "docs/finetune.md has no recipe"};
    const std::string bin = fs::path(app("finetune")).parent_path().string();
    return run_command(concat("cd ", dir_.path().string(), " && OMP_WAIT_POLICY=passive BIN=", bin, " ",
                              environment, " ", MEGALITH_SOURCE_DIR, "/", *found));
  }
};

TEST_F(FinetuneDemo, HalvesTheLossOnHeldOutAnswers) {
  const CommandResult result = demo("STEPS=60");
  ASSERT_EQ(result.code, 0) << result.all();
  const size_t at = result.out.find("loss on held-out answers: ");
  ASSERT_NE(at, std::string::npos) << result.all();
  const std::vector<std::string> words =
      split(result.out.substr(at + 26, result.out.find('\n', at) - at - 26), ' ');
  EXPECT_LT(*parse_double(words.at(2)), 0.5 * *parse_double(words.at(0))) << result.out;
  EXPECT_NE(result.out.find("greedy answers of the form: 0.0 % before"), std::string::npos) << result.out;
  EXPECT_TRUE(file_exists(dir_ / "demo-out/tuned/lora/adapter_model.safetensors"));
}

// After a single step nothing is learned, and the demo's own check must fail.
TEST_F(FinetuneDemo, FailsWhereNothingWasLearned) {
  const CommandResult result = demo("STEPS=1");
  EXPECT_EQ(result.code, 1) << result.all();
}

}  // namespace
}  // namespace megalith::test

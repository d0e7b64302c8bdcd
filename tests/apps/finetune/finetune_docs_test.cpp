#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "tests/apps/finetune/finetune_app.h"

namespace megalith::test {
namespace {

class FinetuneDocs : public FinetuneApp {};

// Runs the commands of docs/finetune.md.
TEST_F(FinetuneDocs, EveryCommandWorks) {
  const std::vector<std::string> commands = doc_commands("finetune.md");
  EXPECT_GT(commands.size(), 5U);
  std::vector<std::string> texts;
  for (const std::string& command : commands) {
    const size_t end = command.find(' ');
    const std::string name = command.substr(0, end);
    if (name == "tools/demo/finetune") continue;  // tested in finetune_demo_test.cpp
    if (name == "bench/lora_rate.py") continue;   // BenchScript.SweepsTheRateOfLora
    ASSERT_TRUE(name == "megalith-finetune" || name == "megalith-generate") << command;
    const CommandResult result = run_command("cd " + dir_.path().string() + " && OMP_WAIT_POLICY=passive " +
                                             app(name.substr(9)) + command.substr(end));
    EXPECT_EQ(result.code, 0) << command << '\n' << result.err;
    if (name == "megalith-generate") texts.push_back(result.out);
  }
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0].find("bb is 2"), 0U) << texts[0];
  EXPECT_EQ(texts[1], texts[0]);
}

}  // namespace
}  // namespace megalith::test

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/file.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// The commands of docs/convert.md.
TEST(ConvertDocs, EveryCommandWorks) {
  const test::TempDir dir;
  fs::copy(test::test_data("convert/goldens/gpt2"), dir / "model");
  fs::copy(test::test_data("convert/goldens/lora_gpt2"), dir / "lora");
  const std::vector<std::string> all = test::doc_commands("convert.md");
  EXPECT_GT(all.size(), 10u);
  for (const std::string& command : all) {
    const std::string app = "megalith-convert";
    ASSERT_TRUE(command.starts_with(app + " ")) << command;
    const auto run = test::run_command("cd " + dir.path().string() + " && " + test::app("convert") +
                                       command.substr(app.size()));
    EXPECT_EQ(run.code, 0) << command << '\n' << run.err;
    const bool prints =
        command.find("inspect") != std::string::npos || command.find("--dry-run") != std::string::npos;
    EXPECT_EQ(run.out.empty(), !prints) << command;
  }
  for (const char* name : {"checkpoint", "hf", "megatron", "from-megatron", "merged", "adapter",
                           "model-f16.gguf", "model-q8_0.gguf", "model-hf"})
    EXPECT_TRUE(fs::exists(dir / name)) << name;
}

}  // namespace
}  // namespace megalith

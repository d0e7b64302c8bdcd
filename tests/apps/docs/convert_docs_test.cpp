#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Runs the commands of a page in `dir`. Each must succeed; those that contain one of `words` must also print
/// something.
void run_page(const test::TempDir& dir, const std::vector<std::string>& commands,
              const std::vector<std::string>& words) {
  for (const std::string& command : commands) {
    const std::string app = "megalith-convert";
    ASSERT_TRUE(command.starts_with(app + " ")) << command;
    const auto run = test::run_command("cd " + dir.path().string() + " && " + test::app("convert") +
                                       command.substr(app.size()));
    EXPECT_EQ(run.code, 0) << command << '\n' << run.err;
    const bool prints = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return command.find(word) != std::string::npos;
    });
    EXPECT_EQ(run.out.empty(), !prints) << command;
  }
}

// Runs the commands of docs/convert.md.
TEST(ConvertDocs, EveryCommandWorks) {
  const test::TempDir dir;
  fs::copy(test::test_data("convert/goldens/gpt2"), dir / "model");
  fs::copy(test::test_data("convert/goldens/lora_gpt2"), dir / "lora");
  const std::vector<std::string> all = test::doc_commands("convert.md");
  EXPECT_GT(all.size(), 10u);
  run_page(dir, all, {"inspect", "--dry-run"});
  for (const char* name : {"checkpoint", "hf", "megatron", "from-megatron", "merged", "adapter",
                           "model-f16.gguf", "model-q8_0.gguf", "model-hf"})
    EXPECT_TRUE(fs::exists(dir / name)) << name;
  const std::string back = read_file(dir / "back/model.safetensors");  // its tokenizer was found
  EXPECT_EQ(back, read_file(dir / "by-files/model.safetensors"));
  EXPECT_EQ(back, read_file(dir / "model/model.safetensors"));
  for (const char* name : {"back/tokenizer.json", "by-files/vocab.json", "by-files/tokenizer.json"})
    EXPECT_TRUE(fs::exists(dir / name)) << name;
}

// Runs the commands of docs/formats/megatron.md. Every way of naming a checkpoint must give the same model.
TEST(ConvertDocs, EveryCommandOnMegatronsCheckpointsWorks) {
  const test::TempDir dir;
  for (const auto& [golden, name] :
       {std::pair{"v2_pp", "pipelined"}, {"dist", "distributed"}, {"v0_stream", "old-release"}})
    fs::copy(test::convert_golden(std::string("megatron/") + golden), dir / name,
             fs::copy_options::recursive);
  const std::vector<std::string> all = test::doc_commands("formats/megatron.md");
  EXPECT_EQ(all.size(), 7u);
  run_page(dir, all, {"inspect"});
  const std::string weights = read_file(dir / "from-ranks/model.safetensors");
  EXPECT_EQ(read_file(dir / "from-one-rank/model.safetensors"), weights);
  EXPECT_EQ(read_file(dir / "from-one-file/model.safetensors"), weights);
  EXPECT_TRUE(fs::exists(dir / "from-distributed/model.safetensors"));
  EXPECT_TRUE(fs::exists(dir / "from-old/model.safetensors"));
}

}  // namespace
}  // namespace megalith

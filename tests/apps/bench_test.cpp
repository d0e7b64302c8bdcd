#include <filesystem>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

// docs/benchmarks.md's command, with nothing to compare with.
TEST(BenchScript, PrintsTablesWithoutPeers) {
  if (run_command("python3 --version").code != 0) GTEST_SKIP() << "there is no python3";
  const TempDir dir;
  fs::create_directory(dir / "corpora");
  fs::copy_file(test_data("apps/fixtures/wiki/text/AA/wiki_00"), dir / "corpora/en.jsonl");
  const std::string bench = test_data("../bench/preprocess.py") + " --corpora " + (dir / "corpora") +
                            " --vocab " + test_data("apps/fixtures/wiki") + " --work " + dir.path().string() +
                            " --bin " + fs::path(app("merge")).parent_path().string();
  const CommandResult result = run_command("python3 " + bench + " --quick --only preprocess,train,merge");
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* row : {"| megalith-preprocess, 1 core, to disk | ",
                          "| megalith-preprocess, 2 cores, to disk | ", "| megalith-tokenizer train | ",
                          "| megalith-merge, synced | ", "| cat and sync of the .bin files | "})
    EXPECT_NE(result.out.find(row), std::string::npos) << row << '\n' << result.out;
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);  // all removed
}

// docs/preprocess.md's command.
TEST(BenchScript, TimesTheStart) {
  if (run_command("python3 --version").code != 0) GTEST_SKIP() << "there is no python3";
  const CommandResult result = run_command("python3 " + test_data("../bench/start.py") +
                                           " --turns 2 --vocab " + test_data("apps/fixtures/wiki") +
                                           " --bin " + fs::path(app("merge")).parent_path().string());
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* row : {"| `megalith-preprocess --version` | ", "| `megalith-preprocess`, one line | "})
    EXPECT_NE(result.out.find(row), std::string::npos) << row << '\n' << result.out;
}

}  // namespace
}  // namespace megalith::test

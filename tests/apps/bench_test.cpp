#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"
#include "tests/support/large.h"
#include "tests/support/once/pattern.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class BenchScript : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command("python3 --version").code != 0) GTEST_SKIP() << "there is no python3";
  }
};

// Runs the command of docs/benchmarks.md, without comparing with other programs.
TEST_F(BenchScript, PrintsTablesWithoutPeers) {
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

TEST_F(BenchScript, ComparesTwoBuilds) {
  const std::string programs = fs::path(app("merge")).parent_path().string();
  const CommandResult result =
      run_command(concat("python3 ", test_data("../bench/pairs.py"), " --quick --before ", programs,
                         " --after ", programs, " --corpus ", test_data("apps/fixtures/wiki/text/AA/wiki_00"),
                         " --vocab ", test_data("apps/fixtures/wiki"), " --only preprocess,merge,convert"));
  EXPECT_EQ(result.code, 0) << result.err;
  const test::Pattern row(
      R"(\| ([^|]+) \| 1 \| [0-9.]+ \([0-9.]+\) \| [0-9.]+ \([0-9.]+\) \| [0-9.]+ \| [0-9.]+ \|)");
  std::vector<std::string> rows;
  for (const test::Pattern::Match& at : row.all_in(result.out)) rows.push_back(at[1]);
  EXPECT_EQ(rows, (std::vector<std::string>{"preprocess --version", "preprocess, 1 worker",
                                            "preprocess, 2 workers", "merge, 6 datasets", "convert"}))
      << result.out;
}

// The benchmarks take half an hour on an idle machine. This test only starts each with the page's command and
// checks that its help lists the options that the page gives.
TEST_F(BenchScript, OfTheDocsTakesTheOptionsPrinted) {
  static const test::Pattern kOption(" (--[a-z0-9-]+)");
  int scripts = 0;
  for (const std::string& line : doc_commands("benchmarks.md")) {
    if (!line.starts_with("bench/")) continue;
    ++scripts;
    const std::string command = line.substr(0, line.find(" #"));
    const CommandResult help = run_command(
        concat("cd ", MEGALITH_SOURCE_DIR, " && ", command.substr(0, command.find(' ')), " --help"));
    EXPECT_EQ(help.code, 0) << command << '\n' << help.all();
    for (const test::Pattern::Match& at : kOption.all_in(command))
      EXPECT_TRUE(test::Pattern(at[1] + "[ ,\\]\n]").is_in(help.out)) << command;
  }
  EXPECT_GE(scripts, 7);
}

// The program that makes docs/finetune.md's table of rates, with a model that has hardly been trained.
TEST_F(BenchScript, SweepsTheRateOfLora) {
  const TempDir dir;
  const CommandResult result =
      run_command(concat("OMP_WAIT_POLICY=passive python3 ", test_data("../bench/lora_rate.py"),
                         " --threads 1 --steps 3 --records 24 ", "--models c++ --rates 5e-5,1e-2 --work ",
                         dir.path().string(), " --bin ", fs::path(app("merge")).parent_path().string()));
  ASSERT_EQ(result.code, 0) << result.err;
  const test::Pattern row(
      R"(\| c\+\+: Qwen2, 6 layers of 192 \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|)");
  const auto found = row.all_in(result.out);
  ASSERT_EQ(found.size(), 1U) << result.out;
  const auto loss = [&](size_t column) { return parse_double(found[0][column]).value_or(0); };
  EXPECT_NEAR(loss(2), 8.3, 0.5) << "ln 4096, of a model that knows nothing";
  EXPECT_LT(loss(4), loss(3)) << "nine steps at the greater rate learn more";
  EXPECT_LT(loss(3), loss(2) + 0.01);
}

// Runs the program that writes the table of start times in docs/benchmarks.md.
TEST_F(BenchScript, TimesTheStart) {
  const CommandResult result = run_command("python3 " + test_data("../bench/start.py") +
                                           " --turns 2 --vocab " + test_data("apps/fixtures/wiki") +
                                           " --bin " + fs::path(app("merge")).parent_path().string());
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* row : {"| `megalith-preprocess --version` | ", "| `megalith-preprocess`, one line | "})
    EXPECT_NE(result.out.find(row), std::string::npos) << row << '\n' << result.out;
}

// Runs the program that writes the tables of vocabularies in docs/benchmarks.md, without other programs.
TEST_F(BenchScript, MeasuresVocabularies) {
  const TempDir dir;
  fs::create_directories(dir / "corpora");
  fs::create_directories(dir / "vocab/json");
  fs::create_directories(dir / "vocab/model");
  fs::copy_file(test_data("apps/fixtures/wiki/text/AA/wiki_00"), dir / "corpora/en.jsonl");
  fs::copy_file(test_data("text/goldens/trained/tokenizer.json"), dir / "vocab/json/tokenizer.json");
  fs::copy_file(test_data("text/goldens/sentencepiece/bytes.model"), dir / "vocab/model/bytes.model");
  const std::string bench = concat("python3 ", test_data("../bench/vocabularies.py"), " --turns 2 --vocab ",
                                   dir / "vocab", " --bin ", fs::path(app("merge")).parent_path().string());
  const CommandResult rates = run_command(concat(bench, " --corpora ", dir / "corpora"));
  EXPECT_EQ(rates.code, 0) << rates.err;
  const CommandResult start = run_command(bench + " --start");
  EXPECT_EQ(start.code, 0) << start.err;
  for (const char* name : {"json", "model"}) {
    EXPECT_TRUE(test::Pattern(concat("\\| ", name, " \\| en \\| [0-9]+ \\|")).is_in(rates.out)) << rates.out;
    EXPECT_TRUE(test::Pattern(concat("\\| ", name, " \\| [0-9]+ \\([0-9]+ – [0-9]+\\) \\|")).is_in(start.out))
        << start.out;
  }
}

/// The program that makes docs/reliability.md's table of restarts. It ends with 1 if a checkpoint differs or
/// faults cost more steps than `options` allow.
void expect_kept(const std::string& options) {
  const CommandResult result =
      run_command(concat("python3 ", test_data("../bench/chaos.py"), " ", options, " --bin ",
                         fs::path(app("pretrain")).parent_path().string(), " --folder ",
                         fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()));
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  std::cout << result.out;
}

// 20 faults: kills and full disks of ranks, and a stop, which takes five seconds. The steps between so few
// vary from seed to seed, and with them the goodput; what a fault costs does not: the steps since the last
// save, which may be the one before while that is being written, and those of the moment until the others
// end.
TEST_F(BenchScript, RestartsAfterEveryFault) {
  SKIP_WITHOUT_GLOO();
  expect_kept("--ranks 2 --faults 18 --stops 1 --disks 6 --lost 25");
  expect_kept("--ranks 4 --servers 2 --faults 2 --stops 0 --lost 25");
}
TEST_F(BenchScript, RestartsAfterTwoHundredFaults) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  expect_kept("--ranks 2,4 --faults 200");
  expect_kept("--ranks 4 --servers 2 --faults 40");
}

}  // namespace
}  // namespace megalith::test

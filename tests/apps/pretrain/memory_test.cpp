// What a run takes of memory is known before its first step.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/apps/program_folder.h"
#include "tests/support/compiler.h"
#include "tests/support/json_log.h"

namespace megalith::test {
namespace {

/// What a run announced and used, in bytes.
struct Memory {
  double announced = 0, used = 0;
};

/// The bytes that "1.60 GiB" means.
double bytes_of(const std::string& number, const std::string& unit) {
  static const std::vector<std::string> kUnits = {"B", "KiB", "MiB", "GiB"};
  const auto at = std::find(kUnits.begin(), kUnits.end(), unit);
  EXPECT_NE(at, kUnits.end()) << unit;
  double bytes = parse_double(number).value_or(-1);
  for (auto one = kUnits.begin(); one != at; ++one) bytes *= 1024;
  return bytes;
}

class MemoryOfRuns : public ProgramFolder {
 protected:
  void SetUp() override {
    if (kSanitizer) GTEST_SKIP() << "sanitizers take memory of their own";
  }
  /// Runs a command that trains and ends after a step.
  Memory of(const std::string& command) {
    std::filesystem::remove(dir_ / "run.jsonl");
    const CommandResult result = run("rm -rf out; " + command + " --log-json run.jsonl");
    EXPECT_EQ(result.code, 0) << result.all();
    const std::string log = result.all(), said = "; in all ";
    const size_t at = log.find(said);
    EXPECT_NE(at, std::string::npos) << log;
    const std::vector<std::string> words = split(log.substr(at + said.size(), 40), ' ');
    return {.announced = bytes_of(words[0], words[1]),
            .used = log_lines(dir_ / "run.jsonl", "train").at(0)["memory_bytes"].as_double()};
  }
  /// Compares two runs that differ in the size of their data alone: what the greater one uses beyond the
  /// other, which has the program's own memory too, it must have announced.
  void expect_announced(const std::string& small, const std::string& great) {
    const Memory less = of(small), more = of(great);
    EXPECT_GT(more.announced - less.announced, 20e6) << "too little to tell from noise";
    EXPECT_LE(more.used - less.used, 1.02 * (more.announced - less.announced)) << great;
  }
};

// These orders have less than 32 MiB, from which on a run keeps them in files.
TEST_F(MemoryOfRuns, CountsTheOrderOfSamples) {
  const std::string run = kTrainOnSet + "--exit-interval 1 --train-iters ";
  expect_announced(run + "10", run + "1000000");
}

TEST_F(MemoryOfRuns, CountsTheOrderOfABlend) {
  ASSERT_EQ(this->run("cp set.bin b.bin; cp set.idx b.idx").code, 0);
  std::string run = kTrainOnSet + "--exit-interval 1 --train-iters ";
  const std::string one = "--data-path set ";
  run.replace(run.find(one), one.size(), "--data-path 0.3 set 0.7 b ");
  expect_announced(run + "10", run + "550000");
}

TEST_F(MemoryOfRuns, CountsRecords) {
  const std::string line = "{\"src\": \"one two three\", \"tgt\": \"four five six\"}";
  ASSERT_EQ(run(concat("mkdir few many; yes '", line, "' | head -n 9 > few/train.json; yes '", line,
                       "' | head -n 200000 > many/train.json"))
                .code,
            0);
  const std::string run =
      "megalith-finetune --model model --lora --max-steps 1 --micro-batch-size 1 "
      "--lr 0.01 --threads 1 --output-dir out --data ";
  expect_announced(run + "few", run + "many");
}

}  // namespace
}  // namespace megalith::test

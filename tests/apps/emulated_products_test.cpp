// Runs on the emulated device choose among the algorithms of its cuBLASLt
// (tests/emulator/include/cublasLt.h), whose sums have other last bits, and keep their choice.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/apps/pretrain/pretrain_ranks.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

/// A machine: which algorithm is the fastest there, and the folder below the test's with its choices; empty:
/// what the other variables name.
struct Machine {
  const char* fastest;
  std::string cache;
  const char* cublas = "130100";
};

class EmulatedProducts : public PretrainRanks {
 protected:
  /// The log of a run there.
  std::string train_on(const Machine& machine, const std::string& options) const {
    const EmulatedGpus gpu(1, 1);
    const Variable algorithms("MEGALITH_EMULATOR_ALGORITHMS", "5");
    const Variable cache("MEGALITH_CACHE_DIR", machine.cache.empty() ? "" : dir_ / machine.cache),
        cublas("MEGALITH_EMULATOR_CUBLAS", machine.cublas),
        fastest("MEGALITH_EMULATOR_FASTEST", machine.fastest);
    const CommandResult result =
        train("--device cuda --train-iters 6 --eval-iters 0 --log-interval 1 " + options);
    EXPECT_EQ(result.code, 0) << result.all();
    return result.all();
  }
  std::vector<double> bits_of(const std::string& log_json) const {
    std::vector<double> all;
    for (const Json& line : lines(log_json, "train")) all.push_back(line["grad_norm"].as_double());
    EXPECT_EQ(all.size(), 6U);
    return all;
  }
  static bool has(const std::string& log, const std::string& pattern) { return Pattern(pattern).is_in(log); }
};

TEST_F(EmulatedProducts, HaveTheirAlgorithmsTimedOnceForEachMachine) {
  const std::string timed = train_on({"1", "a"}, "--log-json timed.jsonl");
  EXPECT_TRUE(has(timed,
                  "algorithms of [0-9]+ products on emulated device with cuBLASLt 13.1.0: 0 from the "
                  "checkpoint, 0 from .*a, [1-9][0-9]* timed"))
      << timed;
  // What is fast there changes, but the file has the first choice.
  const std::string kept = train_on({"0", "a"}, "--log-json kept.jsonl");
  EXPECT_TRUE(has(kept, "0 from the checkpoint, [1-9][0-9]* from .*a, 0 timed")) << kept;
  EXPECT_EQ(bits_of("kept.jsonl"), bits_of("timed.jsonl"));
  train_on({"0", "b"}, "--log-json other.jsonl");
  EXPECT_NE(bits_of("other.jsonl"), bits_of("timed.jsonl"));
  // A file is of one version.
  const std::string newer = train_on({"0", "a", "130200"}, "--log-json newer.jsonl");
  EXPECT_TRUE(has(newer, "cuBLASLt 13.2.0: 0 from the checkpoint, 0 from .*a, [1-9][0-9]* timed")) << newer;
  EXPECT_EQ(bits_of("newer.jsonl"), bits_of("other.jsonl"));
}

// No folder for files, one that cannot be made, and one whose files are damaged, each in another way.
TEST_F(EmulatedProducts, AreTimedAgainWithoutTheirFiles) {
  {
    const Variable home("HOME", std::nullopt), xdg("XDG_CACHE_HOME", std::nullopt);
    const std::string none = train_on({"1", ""}, "--log-json none.jsonl");
    EXPECT_TRUE(has(none, "0 from the checkpoint, 0 from files \\(no HOME\\), [1-9][0-9]* timed")) << none;
  }
  write_file(dir_ / "file", "");
  EXPECT_TRUE(has(train_on({"1", "file/none"}, ""), "0 from .*none, [1-9][0-9]* timed"));

  train_on({"1", "a"}, "");
  int number = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "a")) {
    std::string contents = read_file(entry.path().string());
    if (number % 3 == 0) contents.clear();
    if (number % 3 == 1) contents.pop_back();
    if (number % 3 == 2) contents.back() ^= 1;
    write_file(entry.path().string(), contents);
    ++number;
  }
  EXPECT_GT(number, 3);
  const std::string again = train_on({"1", "a"}, "--log-json again.jsonl");
  EXPECT_TRUE(has(again, "the cached file is damaged; it is made again")) << again;
  EXPECT_TRUE(has(again, concat("0 from .*a, ", number, " timed"))) << again;
  EXPECT_EQ(bits_of("again.jsonl"), bits_of("none.jsonl"));
  EXPECT_TRUE(has(train_on({"1", "a"}, ""), concat(number, " from .*a, 0 timed")));
}

TEST_F(EmulatedProducts, KeepTheAlgorithmsOfTheCheckpoint) {
  const std::string saves = "--save-interval 2 --save ";
  train_on({"1", "a"}, saves + "whole --log-json whole.jsonl");
  train_on({"1", "a"}, saves + "parts --exit-interval 2 --log-json parts.jsonl");
  const std::string resumed = train_on({"0", "b"}, saves + "parts --load parts --log-json parts.jsonl");
  EXPECT_TRUE(has(resumed, "products .*: [1-9][0-9]* from the checkpoint, 0 from .*, 0 timed")) << resumed;
  EXPECT_FALSE(has(resumed, "bits may differ")) << resumed;
  EXPECT_EQ(bits_of("parts.jsonl"), bits_of("whole.jsonl"));
}

TEST_F(EmulatedProducts, SayWhereBitsMayDiffer) {
  const std::string saves = "--save-interval 2 --exit-interval 2 --save one";
  train_on({"1", "a"}, saves);
  const std::string newer = train_on({"1", "b", "130200"}, "--load one");
  EXPECT_TRUE(has(newer,
                  "its products were computed on emulated device with cuBLASLt 13.1.0, so bits may "
                  "differ from here on"))
      << newer;
  const std::string larger = train_on({"1", "b"}, "--load one --micro-batch-size 1");
  EXPECT_TRUE(has(larger,
                  "its products were computed of another layout, or of other sizes, so bits may "
                  "differ"))
      << larger;
  const CommandResult cpu = train("--train-iters 6 --eval-iters 0 --load one");
  EXPECT_EQ(cpu.code, 0) << cpu.all();
  EXPECT_TRUE(has(cpu.all(), "computed on emulated device with cuBLASLt 13.1.0, so bits may differ"))
      << cpu.all();
  ASSERT_EQ(train("--train-iters 6 --eval-iters 0 --exit-interval 2 --save cpu").code, 0);
  const std::string from_cpu = train_on({"1", "b"}, "--load cpu");
  EXPECT_TRUE(has(from_cpu, "computed without a choice of their algorithms, so bits may differ")) << from_cpu;
}

// Each rank's machine has another fastest algorithm; all take that of the first rank.
TEST_F(EmulatedProducts, AreComputedAlikeByAllRanks) {
  const auto bits = [&](const std::string& fastest, const std::string& cache,
                        const std::string& cublas = "130100") {
    const EmulatedGpus gpus(1, 2);
    const Variable algorithms("MEGALITH_EMULATOR_ALGORITHMS", "5");
    const int code = start(
        "RANK=%r WORLD_SIZE=2 LOCAL_RANK=%r LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
            std::to_string(free_port()) + " MEGALITH_EMULATOR_FASTEST=" + fastest +
            " MEGALITH_EMULATOR_CUBLAS=" + cublas + " MEGALITH_CACHE_DIR=" + dir_ / cache,
        "--device cuda --train-iters 6 --eval-iters 0 --micro-batch-size 1 --log-interval 1 --log-json " +
            cache + ".jsonl");
    EXPECT_EQ(code, 0) << file("log.0") << file("log.1");
    return bits_of(test::replaced(cache, "%r", "0") + ".jsonl");
  };
  const std::vector<double> first = bits("0", "first");
  EXPECT_EQ(bits("%r", "each-%r"), first);
  const std::vector<double> second = bits("1", "second");
  EXPECT_NE(second, first);
  // A rank with another version computes by what that suggests, here the first algorithm.
  const std::vector<double> mixed = bits("1", "mixed", "1301%r0");
  EXPECT_NE(mixed, first);
  EXPECT_NE(mixed, second);
}

}  // namespace
}  // namespace megalith::test

// What every program does when the system refuses it memory, threads or a stack.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/apps/program_folder.h"
#include "tests/support/compiler.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class Limits : public ProgramFolder {
 protected:
  void SetUp() override {
    if (kSanitizer) GTEST_SKIP() << "a sanitizer needs more addresses than any limit leaves";
    if (kClang) GTEST_SKIP() << "libomp ends a process that it can give no thread";
  }
  /// Runs the command under a limit. True if the system refused it something: it then ended with 71, with one
  /// error, which is its last line. Nothing else may have happened but that it succeeded.
  bool refused(const std::string& limit, const std::string& command) {
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      if (entry.path().filename().string().starts_with("out")) fs::remove_all(entry.path());
    const CommandResult result = run("ulimit " + limit + " && " + command);
    EXPECT_TRUE(result.code == 0 || result.code == 71)
        << limit << ": " << command << ": " << result.code << " " << result.err;
    if (result.code == 71) {
      EXPECT_EQ(errors(result.err), 1) << limit << ": " << command << ": " << result.err;
      if (limit.starts_with("-v")) {
        EXPECT_NE(result.err.find("ulimit " + limit.substr(0, 2) + " is "), std::string::npos)
            << limit << ": " << command << ": " << result.err;
      }
    }
    return result.code == 71;
  }
  /// The lines from the first error on; before it the program may have logged what it did.
  static int64_t errors(const std::string& text) {
    const size_t first = text.find(": error: ");
    if (first == std::string::npos) return 0;
    return std::count(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(), '\n');
  }

  const std::vector<std::string> kCommands = {
      "megalith-preprocess --input lines.jsonl --tokenizer-type NullTokenizer --vocab-size 9 --workers 4 "
      "--output-prefix out",
      "megalith-merge --input sets --output-prefix out",
      "megalith-data inspect set",
      "megalith-convert model --to megatron --output out",
      "megalith-convert model --to gguf --output out.gguf",
      "megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output out",
      "megalith-generate --model model --prompt a --max-new-tokens 2 --threads 4",
      "megalith-eval --model model --tasks lines.jsonl --threads 4",
      "megalith-autoplan --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
      "--vocab-size 50257 --global-batch-size 64 --simulate 16",
      kTuneModel + "out",
      kTrainOnSet + "--train-iters 2 --save out --threads 4",
  };
};

TEST_F(Limits, OfAddressesEndTrainingOfTwoRanksWith71) {
  const std::string train =
      kTrainOnSet + "--train-iters 4 --nproc 2 --threads 2 --save out --save-interval 1";
  int times = 0;
  for (int kib = 150'000; kib <= 400'000; kib += 10'000) times += refused(concat("-v ", kib), train);
  EXPECT_GT(times, 5);
}

// Ranks that are threads share oneDNN's cache of primitives. Where one gets no memory there, the others must
// not wait for its entry, nor read it.
TEST_F(Limits, OfAddressesEndRanksThatMakePrimitivesWith71) {
  const std::string train =
      kTrainOnSet + "--train-iters 4 --nproc 2 --threads 1 --save out --save-interval 1 --ckpt-format ";
  int times = 0;
  for (int kib = 100'000; kib < 150'000; kib += 1'000)
    times += refused(concat("-v ", kib), train + (kib % 2'000 == 0 ? "torch" : "megalith"));
  EXPECT_GT(times, 10);
}

TEST_F(Limits, OfAddressesEndRanksThatAreProcessesWith71) {
  SKIP_WITHOUT_GLOO();
  const std::string train = kTrainOnSet + "--train-iters 2 --gpus 0,1 --log-dir out";
  int times = 0;
  for (int kib = 100'000; kib <= 340'000; kib += 12'000) {
    const CommandResult result = run(concat("ulimit -v ", kib, " && ", train));
    EXPECT_TRUE(result.code == 0 || result.code == 71) << kib << ": " << result.code << " " << result.err;
    if (result.code == 0) continue;
    ++times;
    // The rank that was refused it says so: rank 0 on stderr, the other one in its log.
    const std::string log = dir_ / "out/workerlog.1";
    const std::string said = result.err + (fs::exists(log) ? read_file(log) : std::string());
    EXPECT_NE(said.find(concat("ulimit -v is ", kib)), std::string::npos) << kib << said;
    fs::remove_all(dir_ / "out");
  }
  EXPECT_GT(times, 3);
}

TEST_F(Limits, OfAddressesEndEveryProgramWith71) {
  int times = 0;
  for (const std::string& command : kCommands)
    for (int kib = 30'000; kib <= 240'000; kib += 15'000) times += refused(concat("-v ", kib), command);
  EXPECT_GT(times, 30);
}

// The weights are read as the file holds them, but with --int8 they are made anew.
TEST_F(Limits, OfAddressesNameWeightsThatAreTooLarge) {
  const std::string made =
      "megalith-pretrain --num-layers 1 --hidden-size 1024 --num-attention-heads 16 --seq-length 8 "
      "--max-position-embeddings 8 --micro-batch-size 1 --lr 0.01 --train-iters 1 --mock-data --eval-iters 0 "
      "--tokenizer-model model --save large --no-save-optim && ";
  ASSERT_EQ(run(made + "true").code, 0);
  int times = 0;
  for (int kib = 60'000; kib <= 160'000; kib += 10'000) {
    const CommandResult result =
        run(concat("ulimit -v ", kib,
                   " && megalith-generate --model large --prompt a --max-new-tokens 1 --int8 --threads 1"));
    const size_t at = result.err.find("large/iter_0000001: its weights, ");
    if (result.code != 71 || at == std::string::npos) continue;
    ++times;
    EXPECT_NE(result.err.find(" in int8, are too large for the memory of this machine: ", at),
              std::string::npos)
        << result.err;
  }
  EXPECT_GT(times, 0);
}

TEST_F(Limits, OfStacksAreRefusedFirst) {
  for (const std::string& command : kCommands) {
    for (const int kib : {64, 128, 256, 383}) {
      const CommandResult result = run(concat("ulimit -s ", kib, " && ", command));
      EXPECT_EQ(result.code, 71) << command << result.err;
    }
    EXPECT_FALSE(refused("-s 384", command));
    for (const char* variable : {"OMP_STACKSIZE=64", "GOMP_STACKSIZE=64", "KMP_STACKSIZE=64k"}) {
      const CommandResult result = run(concat(variable, ' ', command));
      EXPECT_EQ(result.code, 71) << command << result.err;
      EXPECT_NE(result.err.find(variable), std::string::npos) << result.err;
    }
  }
  EXPECT_NE(run("ulimit -s 64; megalith-data inspect set").err.find("ulimit -s"), std::string::npos);
}

}  // namespace
}  // namespace megalith::test

// megalith-generate in ranks: threads, processes that it starts or a launcher, on the CPU and on emulated
// GPUs. Its texts are those of one rank on the CPU.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

class GenerateRanks : public testing::Test {
 protected:
  explicit GenerateRanks(const std::string& family = "llama") {
    std::filesystem::copy(test_data("parity/goldens/generate-") + family, dir_ / "model");
    std::filesystem::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
    write_file(dir_ / "prompts", "The first\ndef f(x):\na\nna\xc3\xafve\nThe \n");
  }
  CommandResult generate(const std::string& options) const {
    return run_command(concat("cd ", dir_.path().string(), "; ", app("generate"),
                              " --model model --distributed-timeout-minutes 1 --max-new-tokens 12 ",
                              options));
  }
  /// The text of one rank on the CPU.
  std::string of_one(const std::string& options) const {
    const CommandResult one = generate(options);
    EXPECT_EQ(one.code, 0) << one.all();
    EXPECT_NE(one.out, "");
    return one.out;
  }
  /// Each of these kinds of ranks writes the text of one.
  void expect_same(const std::string& options, const std::vector<std::string>& kinds) const {
    const std::string one = of_one(options);
    for (const std::string& ranks : kinds) {
      const CommandResult result = generate(concat(options, ' ', ranks));
      EXPECT_EQ(result.code, 0) << ranks << result.all();
      EXPECT_EQ(result.out, one) << ranks << result.err;
    }
  }
  /// As many prompts, which begin alike.
  void write_prompts(int count, const std::string& beginning) const {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += concat(beginning, ' ', i, '\n');
    write_file(dir_ / "prompts", lines);
  }
  const std::string kFile = "--prompts-file prompts";
  const TempDir dir_;
};

/// What depends on the model. TensorRanks compares more of it, without the program.
class GenerateRanksOf : public GenerateRanks, public testing::WithParamInterface<const char*> {
 protected:
  GenerateRanksOf() : GenerateRanks(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Families, GenerateRanksOf, testing::Values("gpt2", "llama"),
                         [](const auto& instance) { return std::string(instance.param); });

constexpr const char* kTensor = "--tensor-model-parallel-size 2 ";

TEST_P(GenerateRanksOf, ThatAreThreadsWriteTheTextOfOne) {
  const std::string both = concat("--nproc 4 --batch-size 2 ", kTensor);
  expect_same(kFile, {concat("--nproc 2 ", kTensor), "--nproc 8"});
  expect_same(kFile + " --json --num-beams 3 --num-return-sequences 2", {both});
  expect_same(kFile + " --temperature 1 --num-return-sequences 3 --seed 5", {both});
}

TEST_F(GenerateRanks, ThatAreProcessesWriteTheTextOfOne) {
  SKIP_WITHOUT_GLOO();
  expect_same(kFile, {concat("--gpus 0,1 ", kTensor), concat("--gpus 0,1,2,3 ", kTensor)});
}

// A launcher's ranks read the same command line; the first one alone reads stdin and prints.
TEST_F(GenerateRanks, OfALauncherWriteTheTextOfOne) {
  SKIP_WITHOUT_GLOO();
  const std::string program = concat(app("generate"), " --model model --max-new-tokens 12 ");
  const std::string one = run_command(concat("cd ", dir_.path().string(), "; echo The | ", program)).out;
  for (const std::string& options : {std::string(), std::string(kTensor)}) {
    const std::string rank = concat("MASTER_ADDR=127.0.0.1 MASTER_PORT=", free_port(), " WORLD_SIZE=2 RANK=");
    const CommandResult result =
        run_command(concat("cd ", dir_.path().string(), "; ", rank, "1 ", program, options,
                           " </dev/null >other 2>&1 & echo The | ", rank, "0 ", program, options, "; a=$?; ",
                           "wait $!; b=$?; exit $((a > b ? a : b))"));
    EXPECT_EQ(result.code, 0) << result.all() << read_file(dir_ / "other");
    EXPECT_EQ(result.out, one);
    EXPECT_EQ(read_file(dir_ / "other"), "");
  }
}

TEST_P(GenerateRanksOf, OnGpusWriteTheTextOfTheCpu) {
  const std::string one = of_one(kFile);
  for (const auto& [order, ranks] :
       {std::pair{2, "--nproc 4 "}, {3, "--deterministic-collectives --nproc 2 "}}) {
    const EmulatedGpus gpus(order);
    const CommandResult result = generate(concat(kFile, " --device cuda ", ranks, kTensor));
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_EQ(result.out, one) << ranks;
    EXPECT_NE(result.err.find("> NCCL "), std::string::npos) << result.err;
  }
}

TEST_F(GenerateRanks, OnGpusMayBeProcessesOrShareADevice) {
  const std::string one = of_one(kFile);
  if (has_process_comm()) {
    const EmulatedGpus gpus(2);
    const CommandResult processes = generate(concat(kFile, " --device cuda --gpus 0,1 ", kTensor));
    EXPECT_EQ(processes.code, 0) << processes.all();
    EXPECT_EQ(processes.out, one) << processes.err;
  }
  const EmulatedGpus gpus(3, 1);
  const Variable named("CUDA_VISIBLE_DEVICES", "0");
  const CommandResult shared = generate(concat(kFile, " --device cuda --nproc 2 ", kTensor));
  EXPECT_EQ(shared.code, 0) << shared.all();
  EXPECT_EQ(shared.out, one) << shared.err;
}

// The second rank continues the last prompts; it ends them where --stop does, and rank 0 prints them.
TEST_F(GenerateRanks, EndTextsAtAStopText) {
  const std::string whole = of_one(kFile + " --no-echo");
  const std::string last = whole.substr(whole.rfind('\n', whole.size() - 2) + 1);
  const std::string stop = last.substr(last.size() - 3, 2);
  const std::string options = concat(kFile, " --json --stop '", stop, '\'');
  EXPECT_NE(of_one(options).find("\"finish_reason\": \"stop\""), std::string::npos) << stop;
  expect_same(options, {"--nproc 2", concat("--nproc 4 ", kTensor)});
}

TEST_P(GenerateRanksOf, AddAnAdapterAndReadAChat) {
  for (const char* kind : {"lora", "prefix"}) {
    const std::string adapter = test_data(concat("parity/goldens/adapters/", GetParam(), '-', kind));
    expect_same(concat(kFile, " --adapter ", adapter), {concat("--nproc 2 ", kTensor)});
  }
  write_file(dir_ / "chat.json", R"([{"role": "user", "content": "The first"}])");
  write_file(dir_ / "model/chat_template.jinja",
             "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  expect_same("--chat chat.json", {concat("--nproc 2 ", kTensor)});
}

TEST_F(GenerateRanks, SayWhatTheyCannotDo) {
  for (const auto& [options, words] :
       {std::pair{"--nproc 2 --tensor-model-parallel-size 3", "does not divide the 2 ranks"},
        {"--nproc 3 --tensor-model-parallel-size 3", "is not a multiple of --tensor-model-parallel-size 3"},
        {"--tensor-model-parallel-size 2", "give --nproc 2"},
        {"--nproc 2 --chat", "--chat without a file is a conversation"},
        {"--nproc 2 --tensor-model-parallel-size 2 --int8", "--int8 and --tensor-model-parallel-size 2"},
        {"--nproc 2 --pipeline-model-parallel-size 2", "--pipeline-model-parallel-size"},
        {"--nproc 2 --context-parallel-size 2", "--context-parallel-size"},
        {"--nproc 2 --sharding stage1", "--sharding"},
        {"--gpus 0,1 --restarts 2", "--restarts"}}) {
    const CommandResult refused = generate(concat("-p The ", options));
    EXPECT_EQ(refused.code, 64) << options << refused.all();
    EXPECT_NE(refused.err.find(words), std::string::npos) << options << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(GenerateRanks, SayThatSomeHaveNoPrompt) {
  const std::string words = "1 of 2 data-parallel ranks have no prompt: there are 1";
  const CommandResult two = generate("-p The --nproc 2");
  EXPECT_NE(two.err.find(words), std::string::npos) << two.err;
  EXPECT_EQ(generate("-p The -p a --nproc 2").err.find("no prompt"), std::string::npos);
  EXPECT_EQ(generate(concat("-p The --nproc 2 ", kTensor)).err.find("no prompt"), std::string::npos);
}

// The groups of a file with many prompts print in rounds: 64 prompts each.
TEST_F(GenerateRanks, PrintManyTextsInTheirOrder) {
  write_prompts(150, "The");
  for (const std::string options : {"", " --temperature 1 --num-return-sequences 2 --seed 5"})
    expect_same(kFile + " --max-new-tokens 3" + options, {"--nproc 2", concat("--nproc 4 ", kTensor)});
}

TEST_F(GenerateRanks, RefuseALongPromptBeforeTheyPrint) {
  write_file(dir_ / "prompts", concat("The\na\n", std::string(500, 'x'), '\n'));
  for (const char* ranks : {"--nproc 2", "--nproc 2 --tensor-model-parallel-size 2"}) {
    const CommandResult refused = generate(concat(kFile, ' ', ranks));
    EXPECT_EQ(refused.code, 64) << refused.all();
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("the model 64 positions; shorten the prompt"), std::string::npos)
        << refused.err;
  }
}

// As in training: the texts are written, and the exit code shows that the log is not.
TEST_F(GenerateRanks, TellThatALogCannotBeWritten) {
  std::filesystem::create_directory(dir_ / "logs");
  std::filesystem::create_symlink("/dev/full", dir_ / "logs/workerlog.0");
  const CommandResult result = generate(kFile + " --nproc 2 --log-dir logs");
  EXPECT_EQ(result.code, 74) << result.all();
  EXPECT_EQ(result.out, of_one(kFile));
  EXPECT_NE(result.err.find("generate: error: logs/workerlog.0: cannot write: No space left on device"),
            std::string::npos)
      << result.err;
  const CommandResult other = generate(kFile + " --nproc 2 --log-dir other");
  EXPECT_EQ(other.code, 0) << other.all();
  EXPECT_NE(read_file(dir_ / "other/workerlog.0").find("generating in 2 ranks"), std::string::npos);
}

// All texts would take a minute or more.
TEST_F(GenerateRanks, EndQuietlyWhenNobodyReads) {
  write_prompts(100000, "a");
  for (const std::string& ranks : {concat("--nproc 4 ", kTensor), std::string("--gpus 0,1")}) {
    if (ranks.starts_with("--gpus") && !has_process_comm()) continue;
    const CommandResult result =
        run_command(concat("cd ", dir_.path().string(), "; (timeout 30 ", app("generate"), " --model model ",
                           kFile, " --max-new-tokens 12 ", ranks, "; echo $? >code) | true"));
    EXPECT_EQ(read_file(dir_ / "code"), "0\n") << result.all();
    EXPECT_EQ(result.err.find("error"), std::string::npos) << result.err;
  }
}

// Ranks whose options differ would choose apart.
TEST_F(GenerateRanks, CompareTheirOptions) {
  SKIP_WITHOUT_GLOO();
  const std::string rank = concat("MASTER_ADDR=127.0.0.1 MASTER_PORT=", free_port(), " WORLD_SIZE=2 RANK=");
  const std::string program = concat(app("generate"), " --model model -p The --max-new-tokens ");
  const CommandResult result =
      run_command(concat("cd ", dir_.path().string(), "; ", rank, "1 ", program, "5 >other 2>&1 & ", rank,
                         "0 ", program, "6; a=$?; wait; exit $a"));
  EXPECT_EQ(result.code, 64) << result.all();
  EXPECT_NE(result.err.find("max-new-tokens"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace megalith::test

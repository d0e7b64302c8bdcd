#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/models.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

/// Options with their values: "--micro-batch-size 8".
using Words = std::vector<std::string>;

Words options_of(const std::string& line) {
  Words out;
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    if (word.starts_with("--"))
      out.push_back(word);
    else
      out.back() += ' ' + word;
  }
  return out;
}

std::string name_of(const std::string& option) {
  return option.substr(0, option.find(' '));
}

/// Which options set the same choice: of ours and of Megatron FSDP.
std::string choice_of(const std::string& option) {
  const std::string name = name_of(option);
  for (const char* part : {"sharding", "fsdp", "distributed-optimizer"})
    if (name.find(part) != std::string::npos) return "sharding";
  return name.starts_with("--recompute") ? "recompute" : name;
}

std::string line_of(const Words& options) {
  std::string line = app("autoplan");
  for (const std::string& option : options) line += ' ' + option;
  return line + " --top 1 --json";
}

/// The command with `change` in the place of its own options for these choices.
Words changed(Words command, const Words& change) {
  for (const std::string& one : change)
    std::erase_if(command, [&](const std::string& option) { return choice_of(option) == choice_of(one); });
  command.insert(command.end(), change.begin(), change.end());
  return command;
}

constexpr const char* kLlama =
    " --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
    "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --seq-length 4096 "
    "--vocab-size 32000 --global-batch-size 128";

/// Commands of which many do not fit.
std::vector<Words> commands() {
  std::vector<Words> out;
  for (const char* model :
       {"--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008",
        "--num-layers 40 --hidden-size 5120 --num-attention-heads 40 --ffn-hidden-size 13824",
        "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention "
        "--num-query-groups 8 --ffn-hidden-size 28672"})
    for (const char* gpu : {"--gpu h100", "--gpu a100-40", "--gpu rtx4090-24gb"})
      for (const char* world : {"--world-size 4", "--world-size 8", "--world-size 16"})
        for (const char* fixed :
             {"", "--micro-batch-size 8", "--sharding none", "--recompute-granularity selective",
              "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1", "--attention-kernel torch",
              "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 --micro-batch-size "
              "8",
              "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 10 --micro-batch-size 8"})
          out.push_back(options_of(std::string(model) + kLlama + ' ' + gpu + ' ' + world + ' ' + fixed));
  return out;
}

TEST(AutoplanRemedy, ADifferentCommandThatItNamesFits) {
  constexpr int kWanted = 50;
  int without = 0, named = 0;
  for (const Words& command : commands()) {
    if (named == kWanted) break;
    const CommandResult result = run_command(line_of(command));
    if (result.code == 0) continue;
    ASSERT_EQ(result.code, 64) << result.err;
    const Json answer = Json::parse(result.out, "answer");
    const Json* const change = answer.find("smallest_change_options");
    if (!change) {
      ++without;
      continue;
    }
    ++named;
    const CommandResult again = run_command(line_of(changed(command, options_of(change->as_string()))));
    EXPECT_EQ(again.code, 0) << line_of(command) << "\n" << change->as_string() << "\n" << again.err;
  }
  EXPECT_EQ(named, kWanted);
  EXPECT_LE(without, kWanted / 10);
}

}  // namespace
}  // namespace megalith

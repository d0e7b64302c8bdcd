// Runs on the emulated device whose attention the emulated cuDNN computes (tests/emulator/cudnn), which is
// right, wrong, or refuses.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "tests/apps/pretrain/pretrain_ranks.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

class EmulatedAttention : public PretrainRanks {
 protected:
  /// The log of a run with a cuDNN of this kind; empty: one that is too old.
  std::string train_with(const std::string& cudnn, const std::string& options) const {
    const Variable kind("MEGALITH_EMULATOR_CUDNN", cudnn.empty() ? std::nullopt : std::optional(cudnn));
    const CommandResult result = train(kOptions + options);
    EXPECT_EQ(result.code, 0) << result.all();
    return result.all();
  }
  std::vector<double> figures(const std::string& log_json, const char* key) const {
    std::vector<double> all;
    for (const Json& line : lines(log_json, "train")) all.push_back(line[key].as_double());
    EXPECT_EQ(all.size(), 6U);
    return all;
  }
  std::vector<double> bits_of(const std::string& log_json) const { return figures(log_json, "grad_norm"); }
  static bool has(const std::string& log, const std::string& pattern) { return Pattern(pattern).is_in(log); }

  const EmulatedPlugin plugin_;
  const std::string kOptions =
      "--device cuda --bf16 --train-iters 6 --eval-iters 0 --log-interval 1 --attention-dropout 0 "
      "--hidden-dropout 0 ";
};

TEST_F(EmulatedAttention, TrainsByCudnnAsByOurKernels) {
  const std::string ours = train_with("", "--log-json ours.jsonl"),
                    theirs = train_with("right", "--log-json cudnn.jsonl");
  EXPECT_TRUE(has(ours, "attention of 1 shape by our kernels, not by cuDNN: .*is older than cuDNN 9.0"))
      << ours;
  EXPECT_TRUE(has(theirs, "attention of 1 shape by cuDNN 9.19.0")) << theirs;
  const std::vector<double> a = figures("ours.jsonl", "loss"), b = figures("cudnn.jsonl", "loss");
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i] / a[i], 1, 2e-3) << i;
  EXPECT_NE(bits_of("cudnn.jsonl"), bits_of("ours.jsonl"));
}

TEST_F(EmulatedAttention, IsOursWhereCudnnIsWrongOrRefuses) {
  train_with("", "--log-json ours.jsonl");
  const std::vector<double> ours = bits_of("ours.jsonl");
  for (const auto& [kind, reason] :
       {std::pair<std::string, std::string>{"unmasked", "its result differs from that of our kernels"},
        {"unfinished", "its gradient of keys differs"},
        {"refuses", "no engine for this device"}}) {
    const std::string log = train_with(kind, "--log-json " + kind + ".jsonl");
    EXPECT_TRUE(has(log, "by our kernels, not by cuDNN: .*" + reason)) << log;
    EXPECT_EQ(bits_of(kind + ".jsonl"), ours) << kind;
  }
}

TEST_F(EmulatedAttention, IsOursWithDropoutAndInFp32) {
  EXPECT_FALSE(has(train_with("right", "--attention-dropout 0.1"), "cuDNN"));
  const Variable kind("MEGALITH_EMULATOR_CUDNN", "right");
  const CommandResult fp32 = train("--device cuda --train-iters 2 --eval-iters 0 --attention-dropout 0");
  EXPECT_EQ(fp32.code, 0) << fp32.all();
  EXPECT_FALSE(has(fp32.all(), "cuDNN")) << fp32.all();
}

TEST_F(EmulatedAttention, KeepsTheChoiceOfTheCheckpointOrSaysThatBitsMayDiffer) {
  const std::string saves = "--save-interval 2 --save ";
  train_with("right", saves + "whole --log-json whole.jsonl");
  train_with("right", saves + "parts --exit-interval 2 --log-json parts.jsonl");
  const std::string resumed = train_with("right", saves + "parts --load parts --log-json parts.jsonl");
  EXPECT_TRUE(has(resumed, "attention of 1 shape by cuDNN 9.19.0")) << resumed;
  EXPECT_FALSE(has(resumed, "bits may differ")) << resumed;
  EXPECT_EQ(bits_of("parts.jsonl"), bits_of("whole.jsonl"));

  train_with("right", saves + "one --exit-interval 2");
  for (const std::string kind : {"", "refuses"}) {
    const std::string other = train_with(kind, "--load one");
    EXPECT_TRUE(
        has(other, "its attention was computed by cuDNN 9.19.0 on emulated device, so bits may differ"))
        << other;
  }
  train_with("", saves + "own --exit-interval 2");
  const std::string newer = train_with("right", "--load own");
  EXPECT_TRUE(has(newer, "its attention was computed by our kernels, so bits may differ")) << newer;
}

// All take the choice of the first rank, whatever their own cuDNN would do. If theirs refuses, the log names
// the rank.
TEST_F(EmulatedAttention, IsComputedAlikeByAllRanks) {
  const auto bits = [&](const std::string& cudnn, const std::string& name) {
    const int code = start(
        "RANK=%r WORLD_SIZE=2 LOCAL_RANK=%r LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
            std::to_string(free_port()) + " MEGALITH_EMULATOR_DEVICES=2 MEGALITH_EMULATOR_CUDNN=" + cudnn,
        kOptions + "--micro-batch-size 1 --log-json " + name + ".jsonl");
    EXPECT_EQ(code, 0) << file("log.0") << file("log.1");
    return bits_of(name + ".jsonl");
  };
  const std::vector<double> ours = bits("refuses", "ours");
  EXPECT_NE(bits("right", "both"), ours);
  EXPECT_EQ(bits("$([ %r = 0 ] && echo refuses || echo right)", "first"), ours);
  bits("$([ %r = 0 ] && echo right || echo refuses)", "second");
  EXPECT_TRUE(has(file("log.0"), "rank 1 computes attention by our kernels, not by cuDNN as the first rank"))
      << file("log.0");
}

}  // namespace
}  // namespace megalith::test

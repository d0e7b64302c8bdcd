#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {

struct RankLayout {
  const char* name;
  int ranks;
  int order;  // of the devices' work
  const char* options;
};
inline void PrintTo(const RankLayout& layout, std::ostream* out) {
  *out << layout.name;
}

/// Trains small models in ranks that have an emulated GPU each, over the fake of NCCL. Most are processes.
class EmulatedRanksApp : public PretrainApp {
 protected:
  void SetUp() override { SKIP_WITHOUT_GLOO(); }
  /// "0,1,2": what --gpus takes for a process for each of so many GPUs.
  static std::string gpus(int ranks) {
    std::string list = "0";
    for (int rank = 1; rank < ranks; ++rank) list += "," + std::to_string(rank);
    return list;
  }
  CommandResult train_on_gpus(int ranks, const std::string& options) const {
    return train(kLonger + options + " --device cuda --log-dir logs --gpus " + gpus(ranks));
  }
  std::vector<double> figures(const std::string& name, const char* type,
                              const std::string& key = "loss") const {
    std::vector<double> all;
    for (const Json& line : lines(name, type)) all.push_back(line[key].as_double());
    return all;
  }

  /// Starts a run of several ranks on the GPUs with these options and its own.
  using Start = std::function<CommandResult(const std::string& options)>;
  /// The norms of the gradients of each step, on GPUs whose work runs in this order.
  std::vector<double> norms(int order, const Start& start) const {
    const EmulatedGpus gpus(order);
    const CommandResult result = start(" --log-json norms.jsonl");
    EXPECT_EQ(result.code, 0) << result.all();
    std::vector<double> all = figures("norms.jsonl", "train", "grad_norm");
    std::filesystem::remove(dir_ / "norms.jsonl");
    return all;
  }
  /// Trains one rank on the CPU. Its figures are in one.jsonl.
  void train_one(const std::string& options) const {
    std::filesystem::remove(dir_ / "one.jsonl");
    const CommandResult one = train(options + "--log-json one.jsonl");
    ASSERT_EQ(one.code, 0) << one.all();
  }
  /// The losses are those of one rank with these options, in each of these orders of the GPUs' work.
  void expect_same_as_one(const std::string& options, const std::vector<int>& orders,
                          const Start& start) const {
    ASSERT_NO_FATAL_FAILURE(train_one(options));
    for (const int order : orders) {
      SCOPED_TRACE(order);
      const EmulatedGpus gpus(order);
      std::filesystem::remove(dir_ / "ranks.jsonl");
      const CommandResult ranks = start(" --log-json ranks.jsonl");
      ASSERT_EQ(ranks.code, 0) << ranks.all();
      expect_same("one.jsonl", "ranks.jsonl");
    }
  }
  /// A run that ends after its first step and resumes in the second way ends with the loss of one rank.
  void expect_same_when_resumed(const std::string& options, const Start& first, const Start& second) const {
    ASSERT_NO_FATAL_FAILURE(train_one(options));
    const std::string saved = " --save saved --load saved --log-json ranks.jsonl";
    const CommandResult begun = first(" --exit-interval 1" + saved);
    ASSERT_EQ(begun.code, 0) << begun.all();
    const CommandResult resumed = second(saved);
    ASSERT_EQ(resumed.code, 0) << resumed.all();
    EXPECT_NEAR(figures("ranks.jsonl", "train").back() / figures("one.jsonl", "train").back(), 1, 1e-5);
  }
  void expect_same(const std::string& wanted, const std::string& got) const {
    for (const char* type : {"train", "valid"}) {
      const std::vector<double> a = figures(wanted, type), b = figures(got, type);
      ASSERT_EQ(a.size(), b.size()) << type;
      ASSERT_FALSE(a.empty()) << type;
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i] / a[i], 1, 1e-5) << type << ' ' << i;
    }
  }
  const std::string kLonger =
      "--num-layers 4 --micro-batch-size 1 --global-batch-size 4 --train-iters 5 --eval-interval 3 "
      "--eval-iters 1 --attention-dropout 0 --hidden-dropout 0 --distributed-timeout-minutes 1 ";
};

}  // namespace megalith::test

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/parallel/processes/gloo_comm.h"
#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {

/// Lets programs load emulated GPUs, whose work runs in this order.
class EmulatedGpus {
 public:
  explicit EmulatedGpus(int order, int devices = 8)
      : order_("MEGALITH_EMULATOR_ORDER", std::to_string(order)),
        devices_("MEGALITH_EMULATOR_DEVICES", std::to_string(devices)) {}

 private:
  EmulatedPlugin plugin_;
  Variable order_, devices_;
};

/// Trains small models in ranks that have an emulated GPU each, over the fake of NCCL. Most are processes.
class EmulatedRanksApp : public PretrainApp {
 protected:
  void SetUp() override {
    if (!has_process_comm()) GTEST_SKIP() << "built without Gloo (package libgloo-dev)";
  }
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
  /// The norms of the gradients of each step of a run on four GPUs whose work runs in this order.
  std::vector<double> norms(const std::string& options, int order) const {
    const EmulatedGpus gpus(order);
    const CommandResult result = train_on_gpus(4, options + " --log-json norms.jsonl");
    EXPECT_EQ(result.code, 0) << result.all() << file("logs/workerlog.0");
    std::vector<double> all = figures("norms.jsonl", "train", "grad_norm");
    std::filesystem::remove(dir_ / "norms.jsonl");
    return all;
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

// Ranks that are processes, or threads, each with an emulated GPU of its own, over the fake of NCCL: every
// layout trains as one rank does on the CPU, but for the order of sums.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

struct RankLayout {
  const char* name;
  int ranks;
  int order;  // of the devices' work
  const char* options;
};
void PrintTo(const RankLayout& layout, std::ostream* out) {
  *out << layout.name;
}

const RankLayout kLayouts[] = {
    {"Data2", 2, 1, ""},
    {"Data4", 4, 2, ""},
    {"Zero1", 2, 3, "--use-distributed-optimizer"},
    {"Zero2", 2, 1, "--sharding stage2"},
    {"Tensor2", 2, 2, "--tensor-model-parallel-size 2"},
    {"TensorSequence2", 2, 3, "--tensor-model-parallel-size 2 --sequence-parallel"},
    {"Pipeline2", 2, 1, "--pipeline-model-parallel-size 2"},
    {"Pipeline4", 4, 2, "--pipeline-model-parallel-size 4"},
    {"Interleaved2", 2, 3, "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"},
    {"Context2", 2, 1, "--context-parallel-size 2"},
    {"Data2Tensor2Pipeline2", 8, 2, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"},
};

/// Lets programs load emulated GPUs, whose work runs in this order.
class EmulatedGpus {
 public:
  explicit EmulatedGpus(int order, int devices = 8)
      : folder_("MEGALITH_CUDA_LIBS", emulated_cuda_folder()),
        order_("MEGALITH_EMULATOR_ORDER", std::to_string(order)),
        devices_("MEGALITH_EMULATOR_DEVICES", std::to_string(devices)) {}

 private:
  Variable folder_, order_, devices_;
};

class EmulatedRanksApp : public PretrainApp {
 protected:
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
      "--num-layers 4 --micro-batch-size 1 --global-batch-size 8 --train-iters 5 --eval-interval 3 "
      "--eval-iters 1 "
      "--attention-dropout 0 --hidden-dropout 0 --distributed-timeout-minutes 1 ";
};

class EmulatedLayouts : public EmulatedRanksApp, public testing::WithParamInterface<RankLayout> {};
INSTANTIATE_TEST_SUITE_P(All, EmulatedLayouts, testing::ValuesIn(kLayouts),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(EmulatedLayouts, TrainAsOneRankOnTheCpuDoes) {
  const CommandResult one = train(kLonger + "--log-json one.jsonl");
  ASSERT_EQ(one.code, 0) << one.all();
  const EmulatedGpus gpus(GetParam().order);
  const CommandResult ranks =
      train_on_gpus(GetParam().ranks, concat(GetParam().options, " --log-json ranks.jsonl"));
  ASSERT_EQ(ranks.code, 0) << ranks.all() << file("logs/workerlog.0");
  expect_same("one.jsonl", "ranks.jsonl");
}

// Each thread has its own device of the one process.
TEST_F(EmulatedRanksApp, ThreadsTrainAsOneRankOnTheCpuDoes) {
  const CommandResult one = train(kLonger + "--log-json one.jsonl");
  ASSERT_EQ(one.code, 0) << one.all();
  const EmulatedGpus gpus(2);
  for (const std::string layout : {"--nproc 2", "--nproc 2 --pipeline-model-parallel-size 2"}) {
    const CommandResult ranks = train(kLonger + layout + " --device cuda --log-json threads.jsonl");
    ASSERT_EQ(ranks.code, 0) << ranks.all();
    expect_same("one.jsonl", "threads.jsonl");
    std::filesystem::remove(dir_ / "threads.jsonl");
  }
}

TEST_F(EmulatedRanksApp, AddInRankOrderIfAsked) {
  const std::vector<double> one = norms("--deterministic-collectives", 1);
  ASSERT_EQ(one.size(), 5);
  EXPECT_EQ(norms("--deterministic-collectives", 3), one);
  EXPECT_NE(norms("", 1), one) << "the fake's own order is another";
}

// The layout may change, and so may the order of work.
TEST_F(EmulatedRanksApp, ResumeUnderAnotherLayout) {
  const EmulatedGpus gpus(1);
  const CommandResult one = train(kLonger + "--log-json one.jsonl");
  ASSERT_EQ(one.code, 0) << one.all();
  const std::string saved = " --save saved --load saved --log-json ranks.jsonl";
  const CommandResult first = train_on_gpus(2, "--exit-interval 1 --use-distributed-optimizer" + saved);
  ASSERT_EQ(first.code, 0) << first.all() << file("logs/workerlog.0");
  const EmulatedGpus other(3);
  const CommandResult second = train_on_gpus(4, "--tensor-model-parallel-size 2" + saved);
  ASSERT_EQ(second.code, 0) << second.all() << file("logs/workerlog.0");
  EXPECT_NEAR(figures("ranks.jsonl", "train").back() / figures("one.jsonl", "train").back(), 1, 1e-5);
}

// A rank's process dies at a call of NCCL: at the start, in the first step, later.
TEST_F(EmulatedRanksApp, EndWhenOneIsKilledAndNameIt) {
  const EmulatedGpus gpus(1);
  for (const int call : {0, 3, 10, 25, 40}) {
    const Variable fault("MEGALITH_NCCL_FAULT", concat("kill:1:", call));
    const CommandResult result = train_on_gpus(2, "");
    EXPECT_NE(result.code, 0) << call;
    const std::string log = file("logs/workerlog.0");
    EXPECT_NE(log.find("rank 1"), std::string::npos) << call << result.all() << log;
    EXPECT_NE(log.find("lost"), std::string::npos) << call << log;
  }
}

TEST_F(EmulatedRanksApp, NeedADeviceEach) {
  const EmulatedGpus gpus(1, 2);
  const CommandResult few = train(kLonger + "--nproc 4 --device cuda");
  EXPECT_EQ(few.code, 69) << few.all();
  EXPECT_NE(
      few.err.find("rank 2 has no device: it is number 2 of its machine's ranks, and there are 2 devices"),
      std::string::npos)
      << few.all();
  const Variable same("CUDA_VISIBLE_DEVICES", "1");
  const CommandResult shared =
      train(kLonger + "--device cuda --log-dir logs --nnodes 1 --node_rank 0 --nproc_per_node 2");
  EXPECT_EQ(shared.code, 69) << shared.all();
  const std::string log = file("logs/workerlog.0");
  EXPECT_NE(log.find("have the same device, 0000:01:00.0; each needs its own"), std::string::npos) << log;
}

}  // namespace
}  // namespace megalith::test

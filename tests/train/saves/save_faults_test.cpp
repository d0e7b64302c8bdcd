// Two ranks, as processes, save; a fault hits each of their file calls in turn (docs/reliability.md: R1 and
// R3). Then the run is restarted (R2).
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/train/run/loop.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"
#include "tests/support/rank_processes.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultWatch;
using test::TempDir;

constexpr int64_t kStart = 2, kEnd = 3;  // iterations before the trial and at its end

class SaveFaults : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_GLOO();
    PretrainConfig first = config(dir_ / "start");
    first.train.exit_interval = kStart;
    for (const RankEnd& end : run(first)) ASSERT_TRUE(end.is_exit(0)) << end.error;
    fs::copy(dir_ / "start", dir_ / "whole", fs::copy_options::recursive);
    for (const RankEnd& end : run(config(dir_ / "whole"))) ASSERT_TRUE(end.is_exit(0)) << end.error;
  }

  /// A run of two data-parallel ranks. They share the optimizer's state, so both write. Each step saves a
  /// checkpoint, and one checkpoint is kept.
  PretrainConfig config(const std::string& root) const {
    PretrainConfig c = test::tiny_config();
    c.parallel = {};
    c.parallel.data = 2;
    c.parallel.sharding = Sharding::kOptimizer;
    c.train.micro_batch = 1;
    c.train.iters = c.train.decay_iters = kEnd;
    c.train.warmup_iters = 1;
    c.train.eval_iters = 0;
    c.checkpoint.save = c.checkpoint.load = root;
    c.checkpoint.save_interval = 1;
    c.checkpoint.keep_last = 1;
    c.checkpoint.async_save = GetParam();
    c.finish();
    return c;
  }

  static std::vector<RankEnd> run(const PretrainConfig& c,
                                  const std::function<void(int rank)>& before_training = {}) {
    return Processes(2).run([&](Communicator& world) {
      set_log_sink([](const std::string&) {});
      set_cpu_threads(1);
      const StopSignal stop;
      DataSets data = test::tiny_data();
      std::once_flag begun;
      data.train.read = [&](int64_t index, const SampleView& out) {
        std::call_once(begun, [&] {
          if (before_training) before_training(world.rank());
        });
        test::tiny_sample(index, out);
      };
      train_rank({.config = c, .data = data, .tokenizer = nullptr, .stop = stop, .world = world});
      FaultWatch::disarm();
    });
  }

  /// The checksums of all tensors' bytes, from the checkpoint's index.
  static std::map<std::string, std::vector<uint64_t>> checksums(const std::string& root) {
    const CheckpointReader reader(root);
    reader.verify();
    std::map<std::string, std::vector<uint64_t>> sums;
    for (const IndexedTensor& tensor : reader.index().tensors)
      for (const StoredBlock& block : tensor.blocks) sums[tensor.name].push_back(block.checksum);
    return sums;
  }

  static int64_t verified_iteration(const std::string& root) {
    const CheckpointReader reader(root);
    reader.verify();
    return reader.iteration();
  }

  struct Trial {
    int rank;
    bool fired;
    std::vector<RankEnd> ends;
    int64_t iteration;  // iteration that the tracker names; all bytes of its checkpoint were checked
  };
  /// Repeats the run with a fault at each call of each rank in turn, until a run ends without reaching that
  /// call.
  void at_every_call(Fault fault, const std::function<void(const Trial&)>& check) {
    const std::string root = dir_ / "trial";
    for (const int rank : {0, 1}) {
      for (fault.at = 1;; ++fault.at) {
        fs::remove_all(root);
        fs::copy(dir_ / "start", root, fs::copy_options::recursive);
        FaultWatch watch;
        Trial trial{.rank = rank, .fired = false, .ends = {}, .iteration = 0};
        trial.ends = run(config(root), [&](int r) {
          if (r == rank) watch.arm(fault);
        });
        if (!watch.fired()) break;
        SCOPED_TRACE(concat("rank ", rank, ", call ", fault.at, ", ", watch.call(), ": ", trial.ends[0].error,
                            " | ", trial.ends[1].error));
        trial.iteration = verified_iteration(root);
        EXPECT_TRUE(trial.iteration == kStart || trial.iteration == kEnd) << trial.iteration;
        ++trials_;
        check(trial);
        if (HasFailure()) return;
      }
    }
  }
  /// Restarts the run. It must end well and remove what the kill or failure left, even if nothing remained to
  /// be saved.
  void expect_to_resume() {
    for (const RankEnd& end : run(config(dir_ / "trial"))) EXPECT_TRUE(end.is_exit(0)) << end.error;
    EXPECT_EQ(checksums(dir_ / "trial"), checksums(dir_ / "whole"));
    for (const auto& entry : fs::directory_iterator(dir_ / "trial")) {
      const std::string name = entry.path().filename();
      EXPECT_TRUE(name == kTrackerFile || name == iteration_folder(kEnd)) << name;
    }
  }

  const TempDir dir_;
  int trials_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Saves, SaveFaults, testing::Bool(),
                         [](const auto& test) { return test.param ? "Background" : "Waiting"; });

TEST_P(SaveFaults, AKillAtAnyCallLeavesACompleteCheckpointAndARunThatResumes) {
  int lost = 0;
  at_every_call({.mode = Fault::kKill}, [&](const Trial& trial) {
    const RankEnd &killed = trial.ends[static_cast<size_t>(trial.rank)],
                  &other = trial.ends[static_cast<size_t>(1 - trial.rank)];
    EXPECT_TRUE(killed.is_signal(SIGKILL));
    // The other rank may have ended before, if it had nothing left to do.
    EXPECT_TRUE(other.is_exit(75) || (other.is_exit(0) && trial.iteration == kEnd)) << other.status;
    if (other.is_exit(75)) {
      EXPECT_NE(other.error.find(concat("rank ", trial.rank, " on host h", trial.rank)), std::string::npos)
          << other.error;
    }
    lost += trial.iteration == kStart ? 1 : 0;
    if (trials_ % 4 == 0) expect_to_resume();
  });
  EXPECT_GT(trials_, 60);
  EXPECT_GT(lost, 20);
}

TEST_P(SaveFaults, AFullDiskOfOneRankEndsAllAndLeavesTheCheckpointBefore) {
  int ended = 0;
  at_every_call({.mode = Fault::kFail, .error = ENOSPC}, [&](const Trial& trial) {
    const int code = trial.ends[0].is_exit(74) ? 74 : 0;
    for (const RankEnd& end : trial.ends) EXPECT_TRUE(end.is_exit(code)) << end.status << end.error;
    // The run succeeds if there is an alternative to the failing call, or if that call only removes an old
    // checkpoint.
    EXPECT_TRUE(code == 74 || trial.iteration == kEnd) << trial.iteration;
    ended += code == 74 ? 1 : 0;
    for (const auto& entry : fs::directory_iterator(dir_ / "trial"))
      EXPECT_FALSE(code == 74 && entry.path().filename().string().starts_with(".iter")) << entry.path();
    if (code == 74 && trials_ % 8 == 0) expect_to_resume();
  });
  EXPECT_GT(trials_, 60);
  EXPECT_GT(ended, 30);
}

}  // namespace
}  // namespace megalith

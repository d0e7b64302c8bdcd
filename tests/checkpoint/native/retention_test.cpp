#include "libcore/checkpoint/native/retention.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/file.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/files/file.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::TempDir;

void save(const std::string& root, int64_t iteration) {
  const float value = 1;
  CheckpointWriter writer(root, iteration);
  writer.put(Box::whole("x", {1}), {&value, DType::kF32, {1}});
  writer.commit();
}
std::vector<std::string> names_in(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}
using Names = std::vector<std::string>;

class Retention : public testing::Test {
 protected:
  Retention() {
    for (const int64_t iteration : {10, 20, 30, 40}) save(root_, iteration);
  }
  const TempDir dir_;
  const std::string root_ = dir_ / "run";
  const std::string kTracker = "latest_checkpointed_iteration.txt";
};

TEST_F(Retention, KeepsTheLastOnes) {
  EXPECT_EQ(remove_old_checkpoints(root_, 40, 4), (std::vector<int64_t>{}));
  EXPECT_EQ(remove_old_checkpoints(root_, 40, 2), (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(names_in(root_), (Names{"iter_0000030", "iter_0000040", kTracker}));
  EXPECT_EQ(remove_old_checkpoints(root_, 40, 1), (std::vector<int64_t>{30}));
  EXPECT_EQ(CheckpointReader(root_).iteration(), 40);
}

// As in iter_finalize_fn of Megatron's checkpointing.py: only the one before is looked at, so that 10, which
// a killed run may have left, stays.
TEST_F(Retention, RemovesTheOneBeforeUnlessItsIterationIsAMultiple) {
  EXPECT_EQ(remove_previous_checkpoint(root_, 40, 30), (std::vector<int64_t>{}));
  EXPECT_EQ(remove_previous_checkpoint(root_, 40, 20), (std::vector<int64_t>{30}));
  EXPECT_EQ(remove_previous_checkpoint(root_, 40, 20), (std::vector<int64_t>{}));
  EXPECT_EQ(names_in(root_), (Names{"iter_0000010", "iter_0000020", "iter_0000040", kTracker}));
  EXPECT_EQ(remove_previous_checkpoint(root_, 10, 20), (std::vector<int64_t>{}));
  EXPECT_EQ(remove_previous_checkpoint(root_, 20, 20, {root_ + "/iter_0000010"}), (std::vector<int64_t>{}));
}

TEST_F(Retention, LeavesAloneWhatTheTrackerNamesAndWhatIsNewer) {
  write_file(root_ + "/" + kTracker, "20");  // as a user would write it to resume from there
  EXPECT_EQ(remove_old_checkpoints(root_, 30, 1), (std::vector<int64_t>{10}));
  EXPECT_EQ(names_in(root_), (Names{"iter_0000020", "iter_0000030", "iter_0000040", kTracker}));
}

TEST_F(Retention, LeavesAloneWhatIsNoCheckpointOfThisRun) {
  fs::create_directory(dir_ / "base");
  fs::rename(root_ + "/iter_0000010", dir_ / "base/iter_0000010");
  fs::create_directory_symlink(dir_ / "base/iter_0000010", root_ + "/iter_0000010");
  for (const char* name : {"/iter_5", "/iter_00000x5", "/release", "/best"})
    fs::create_directory(root_ + name);
  write_file(root_ + "/iter_0000005", "a file");
  EXPECT_EQ(remove_old_checkpoints(root_, 40, 1), (std::vector<int64_t>{20, 30}));
  EXPECT_EQ(names_in(root_), (Names{"best", "iter_0000005", "iter_0000010", "iter_0000040", "iter_00000x5",
                                    "iter_5", kTracker, "release"}));
  EXPECT_EQ(CheckpointReader(dir_ / "base/iter_0000010").iteration(), 10);
}

// Iteration 20 is in use by a reader. Iteration 10 is named by `used`, through a link: the run that has
// loaded it may be restarted. Both must stay.
TEST_F(Retention, LeavesAloneWhatIsUsed) {
  {
    const CheckpointReader reads(root_ + "/iter_0000020");
    fs::create_directory_symlink(root_ + "/iter_0000010", dir_ / "link");
    EXPECT_EQ(remove_old_checkpoints(root_, 40, 1, {dir_ / "link"}), (std::vector<int64_t>{30}));
    reads.verify();
  }
  EXPECT_EQ(remove_old_checkpoints(root_, 40, 1), (std::vector<int64_t>{10, 20}));
}

TEST_F(Retention, OneThatIsBeingRemovedIsNotRead) {
  const int fd = ::open((root_ + "/iter_0000010").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  try {
    const CheckpointReader reads(root_ + "/iter_0000010");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kComm);
    EXPECT_NE(std::string(error.what()).find("being removed"), std::string::npos) << error.what();
  }
  ::close(fd);
}

// After a kill, every folder with a checkpoint's name must be complete, and the next save must remove all
// other remains.
TEST_F(Retention, AKillAtAnyCallLeavesNoHalfCheckpoint) {
  int trials = 0;
  for (Fault fault{.mode = Fault::kKill, .at = 1};; ++fault.at, ++trials) {
    fs::remove_all(dir_ / "trial");
    fs::copy(root_, dir_ / "trial", fs::copy_options::recursive);
    const test::FaultRun run = run_with_fault(fault, [&] { remove_old_checkpoints(dir_ / "trial", 40, 1); });
    if (!run.fired) break;
    SCOPED_TRACE(concat("call ", fault.at, ", ", run.call));
    for (const std::string& name : names_in(dir_ / "trial"))
      if (name.starts_with("iter_")) CheckpointReader(dir_ / ("trial/" + name)).verify();
    EXPECT_EQ(CheckpointReader(dir_ / "trial").iteration(), 40);
    save(dir_ / "trial", 50);
    for (const std::string& name : names_in(dir_ / "trial")) EXPECT_FALSE(name.starts_with(".")) << name;
    if (HasFailure()) return;
  }
  EXPECT_GT(trials, 8);
}

}  // namespace
}  // namespace megalith

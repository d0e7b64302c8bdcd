// Saves with kill -9, a full disk or a power cut at every call in turn. The tracker must always name a
// complete checkpoint.
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/files/file.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"
#include "tests/support/lossy_disk.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultRun;
using test::FileCall;
using test::TempDir;

// number of rows that take 280 kB, which is more than is buffered before a write call
constexpr int64_t kRows = 700;

void save(const std::string& root, int64_t iteration, int64_t rows = kRows) {
  std::vector<float> big(static_cast<size_t>(rows * 100), static_cast<float>(iteration)),
      small(3, static_cast<float>(iteration));
  CheckpointWriter writer(root, iteration);
  writer.put(Box::whole("big", {rows, 100}), {big.data(), DType::kF32, {rows, 100}});
  writer.put(Box::whole("small", {3}), {small.data(), DType::kF32, {3}});
  writer.put_json(kStateFile, Json::Object{{"iteration", iteration}});
  writer.put_text("tokenizer/merges.txt", "a b\n");
  writer.commit();
}

// As save(), but by two ranks, in the order of steps that JointSave enforces; rank `first` writes first.
void save_by_two(const std::string& root, int64_t iteration, size_t first) {
  const std::vector<float> half(300, static_cast<float>(iteration));
  std::deque<CheckpointWriter> ranks;
  for (const int64_t row : {0, 3}) {
    ranks.emplace_back(root, iteration);
    ranks.back().put({"big", {6, 100}, {row, 0}}, {half.data(), DType::kF32, {3, 100}});
    ranks.back().put_json(kStateFile, Json::object());
  }
  ranks[0].begin();
  for (const size_t rank : {first, 1 - first}) ranks[rank].write(static_cast<int>(rank), {});
  ranks[0].publish(2);
}

// Returns the iteration that the tracker names. Checks every byte of its checkpoint first, and that its
// values are those of this iteration.
int64_t verified_iteration(const std::string& root) {
  const CheckpointReader reader(root);
  reader.verify();
  float value = 0;
  const int64_t rows = reader.at("big").extents[0];
  reader.read({"big", {rows, 100}, {rows - 1, 99}}, {&value, DType::kF32, {1, 1}});
  EXPECT_EQ(value, static_cast<float>(reader.iteration()));
  return reader.iteration();
}

// Has a folder with a checkpoint of iteration 10, which is written once and copied for every trial.
class CrashTest : public testing::Test {
 protected:
  CrashTest() { save(dir_ / "start", 10); }
  std::string fresh() {
    fs::remove_all(dir_ / "trial");
    fs::copy(dir_ / "start", dir_ / "trial", fs::copy_options::recursive);
    return dir_ / "trial";
  }
  // Saves `iteration` into a copy of the start folder, with `fault` at each call in turn. `check` examines
  // each outcome.
  void at_every_call(Fault fault, int64_t iteration,
                     const std::function<void(const FaultRun&, const std::string& root)>& check) {
    int injected = 0;
    for (fault.at = 1;; ++fault.at) {
      const std::string root = fresh();
      const FaultRun run = run_with_fault(fault, [&] { save(root, iteration); });
      if (!run.fired && fault.at > run.calls) break;
      if (!run.fired) continue;  // the fault is a short write, and this call does not write
      ++injected;
      SCOPED_TRACE(concat("call ", fault.at, ", ", run.call));
      check(run, root);
      if (HasFailure()) return;
    }
    EXPECT_GT(injected, fault.mode == Fault::kShort ? 5 : 20);
  }
  TempDir dir_;
};

TEST_F(CrashTest, KillAtAnyCallLeavesACompleteCheckpoint) {
  std::set<int64_t> seen;
  at_every_call({.mode = Fault::kKill}, 20, [&](const FaultRun& run, const std::string& root) {
    EXPECT_TRUE(run.killed);
    seen.insert(verified_iteration(root));
  });
  EXPECT_EQ(seen, (std::set<int64_t>{10, 20}));
}

TEST_F(CrashTest, KillWhileTheSameIterationIsSavedAgainLeavesIt) {
  at_every_call({.mode = Fault::kKill}, 10,
                [&](const FaultRun&, const std::string& root) { EXPECT_EQ(verified_iteration(root), 10); });
}

TEST_F(CrashTest, ARunResumesAfterAKill) {
  at_every_call({.mode = Fault::kKill}, 20, [&](const FaultRun&, const std::string& root) {
    EXPECT_EQ(test::run_with_fault({}, [&] { save(root, 30); }).exit_code, 0);
    EXPECT_EQ(verified_iteration(root), 30);
    for (const auto& entry : fs::directory_iterator(root))
      EXPECT_FALSE(entry.is_directory() && entry.path().filename().string().starts_with('.')) << entry.path();
  });
}

TEST_F(CrashTest, AFullOrBrokenDiskIsAnErrorAndLeavesACompleteCheckpoint) {
  for (const int error : {ENOSPC, EIO})
    at_every_call({.mode = Fault::kFail, .error = error}, 20,
                  [&](const FaultRun& run, const std::string& root) {
                    const int64_t iteration = verified_iteration(root);
                    // If an unnamed temporary file cannot be created, a named one is, so the save succeeds.
                    EXPECT_EQ(run.exit_code, run.call == "open_nameless" ? 0 : exit_code(ErrorKind::kIo));
                    for (const auto& entry : fs::directory_iterator(root))
                      EXPECT_FALSE(entry.path().filename().string().starts_with(".iter")) << entry.path();
                    EXPECT_TRUE(iteration == 10 || iteration == 20);
                  });
}

TEST_F(CrashTest, AShortWriteIsContinued) {
  at_every_call({.mode = Fault::kShort}, 20, [&](const FaultRun& run, const std::string& root) {
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(verified_iteration(root), 20);
  });
}

TEST_F(CrashTest, LosingWhatWasNotSyncedLeavesACompleteCheckpoint) {
  for (const int64_t iteration : {20, 10}) {  // saves a new iteration, then the existing one again
    const std::string root = dir_ / concat("small", iteration);
    save(root, 10, 3);
    test::LossyDisk disk(root);
    const std::vector<FileCall> calls = test::run_logged([&] { save(root, iteration, 3); });
    ASSERT_GT(calls.size(), 20u);
    std::mt19937 random(3);
    for (size_t done = 0; done <= calls.size(); ++done) {
      SCOPED_TRACE(concat("after ", done, " calls"));
      for (int variant = 0; variant < 6; ++variant) {
        disk.restore(dir_ / "lost", [&] { return variant == 0 || (variant > 1 && random() % 2 == 0); });
        const int64_t found = verified_iteration(dir_ / "lost");
        EXPECT_TRUE(found == 10 || found == 20);
        EXPECT_TRUE(done < calls.size() || found == iteration);
      }
      if (HasFailure()) return;
      if (done < calls.size()) disk.apply(calls[done]);
    }
  }
}

// Requirement R4 for several ranks: a checkpoint must not be named before every rank has synced its data.
TEST_F(CrashTest, LosingWhatWasNotSyncedOfTwoRanksLeavesACompleteCheckpoint) {
  for (const size_t first : {0, 1}) {
    const std::string root = dir_ / concat("two", first);
    save_by_two(root, 10, first);
    test::LossyDisk disk(root);
    const std::vector<FileCall> calls = test::run_logged([&] { save_by_two(root, 20, first); });
    ASSERT_GT(calls.size(), 20u);
    std::mt19937 random(5);
    for (size_t done = 0; done <= calls.size(); ++done) {
      SCOPED_TRACE(concat("after ", done, " calls"));
      for (int variant = 0; variant < 6; ++variant) {
        disk.restore(dir_ / "lost", [&] { return variant == 0 || (variant > 1 && random() % 2 == 0); });
        const int64_t found = verified_iteration(dir_ / "lost");
        EXPECT_TRUE(found == 10 || found == 20);
        EXPECT_TRUE(done < calls.size() || found == 20);
      }
      if (HasFailure()) return;
      if (done < calls.size()) disk.apply(calls[done]);
    }
  }
}

}  // namespace
}  // namespace megalith

#include "libcore/train/saves/earlier_run.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/train/run/tiny_run.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// The folder of a run of 6 steps that saved after steps 2, 4 and 6, in any format.
class EarlierRun : public testing::TestWithParam<const char*> {
 protected:
  EarlierRun() {
    PretrainConfig run = config(6);
    run.checkpoint.save_interval = 2;
    train(run, tiny_data(), nullptr);
  }

  PretrainConfig config(int64_t steps) const {
    PretrainConfig c = tiny_config();
    c.train.exit_interval = steps;
    c.checkpoint.save = dir_ / "save";
    c.checkpoint.format = checkpoint_format(GetParam());
    return c;
  }
  bool pairs() const { return GetParam() == std::string("pth"); }

  /// The iterations of all checkpoints in --save, in any format, that could be loaded.
  std::set<int64_t> loadable() const {
    std::set<int64_t> iterations;
    for (const auto& entry : fs::directory_iterator(dir_ / "save")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("iter_")) iterations.insert(std::stoll(name.substr(5)));
      if (!name.starts_with("model_")) continue;
      CheckpointConfig pair;
      pair.save = dir_ / "save";
      pair.number = std::stoll(name.substr(6));
      const auto start = find_start(pair, tiny_config().model);
      if (start && start->state) iterations.insert(start->state->iteration);
    }
    return iterations;
  }
  /// Runs `c` and returns what could be loaded while it read its last sample, before it saved. The samples
  /// behind that, of a step that the run does not take, are read beside the save.
  std::set<int64_t> loadable_during(const PretrainConfig& c) const {
    std::set<int64_t> found;
    DataSets data = tiny_data();
    const int64_t samples = c.train.exit_interval.value() * c.train.global_batch;
    data.train.read = [&](int64_t index, const SampleView& out) {
      if (index < samples) found = loadable();
      tiny_sample(index, out);
    };
    train(c, data, nullptr);
    return found;
  }
  /// Resumes from whatever a --load of the folder takes. Returns the iteration at which the run began.
  int64_t resumed_at() const {
    PretrainConfig c = config(20);
    c.checkpoint.load = c.checkpoint.save;
    const auto start = find_start(c.checkpoint, c.model);
    return start && start->state ? start->state->iteration : -1;
  }

  /// Every file below --save, and when it was written.
  std::string state() const {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / "save"))
      all += entry.path().string() + " " +
             std::to_string(entry.last_write_time().time_since_epoch().count()) + "\n";
    return all;
  }

  void expect_refused(const PretrainConfig& c, const std::string& way_out) const {
    const std::string before = state();
    try {
      train(c, tiny_data(), nullptr);
      ADD_FAILURE() << "an earlier run was replaced";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      for (const std::string& part :
           {"--save " + c.checkpoint.save + ": holds ", way_out, std::string("--overwrite-output-dir")})
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(state(), before);
  }

  TempDir dir_;
};

TEST_P(EarlierRun, IsNotReplacedByOneThatBeginsAfresh) {
  const std::string save = dir_ / "save";
  expect_refused(config(4), pairs() ? "--checkpoint 2" : "--load " + save);
  PretrainConfig ranks = config(4);
  ranks.parallel = {};
  ranks.parallel.data = ranks.parallel.nproc = 2;
  ranks.finish();
  expect_refused(ranks, pairs() ? "--checkpoint 2" : "--load " + save);
  for (const char* other : {"megalith", "pth"}) {
    PretrainConfig c = config(4);
    c.checkpoint.format = checkpoint_format(other);
    expect_refused(c, "resume from it with ");
  }
}

TEST_P(EarlierRun, IsNotReplacedByOneWithItsWeights) {
  PretrainConfig c = config(4);
  c.checkpoint.load = c.checkpoint.save;
  c.checkpoint.finetune = true;
  expect_refused(c, "--no-finetune");
}

TEST_P(EarlierRun, IsNotReplacedByOneThatBeginsElsewhere) {
  PretrainConfig other = config(2);
  other.checkpoint.save = dir_ / "other";
  train(other, tiny_data(), nullptr);
  PretrainConfig c = config(4);
  c.checkpoint.load = dir_ / "other";
  expect_refused(c, "resume from it with ");
}

TEST_P(EarlierRun, IsNotReplacedWithoutItsTracker) {
  if (pairs()) GTEST_SKIP() << "pairs have no tracker";
  fs::remove(dir_ / "save/latest_checkpointed_iteration.txt");
  expect_refused(config(4), "iter_0000006");
}

TEST_P(EarlierRun, IsResumedOrReplacedByThoseThatSaySo) {
  PretrainConfig resumed = config(8);
  resumed.checkpoint.load = resumed.checkpoint.save;
  EXPECT_EQ(train(resumed, tiny_data(), nullptr).iteration, 8);
  if (pairs()) {
    PretrainConfig numbered = config(6);
    numbered.checkpoint.number = 1;  // the folder now holds the pairs 0, 1, 2, 3
    EXPECT_EQ(train(numbered, tiny_data(), nullptr).iteration, 6);
  } else {
    PretrainConfig back = config(6);
    back.checkpoint.load = dir_ / "save/iter_0000004";
    expect_refused(back, "begins at iteration 4 and would replace what follows");
    back.checkpoint.overwrite = true;
    EXPECT_EQ(train(back, tiny_data(), nullptr).iteration, 6);
  }
  PretrainConfig anew = config(2);
  anew.checkpoint.overwrite = true;
  EXPECT_EQ(train(anew, tiny_data(), nullptr).iteration, 2);
}

// Nothing of a run that is overwritten may be loaded later, whichever format replaces which.
TEST_P(EarlierRun, LeavesNothingToLoadWhereItIsOverwritten) {
  for (const char* format : {"megalith", "torch", "torch_dist", "pth"}) {
    const TempDir copy;
    fs::copy(dir_ / "save", copy / "save", fs::copy_options::recursive);
    PretrainConfig anew = config(3);
    anew.checkpoint.format = checkpoint_format(format);
    anew.checkpoint.overwrite = true;
    EXPECT_EQ(loadable_during(anew), std::set<int64_t>()) << format;
    EXPECT_EQ(loadable(), std::set<int64_t>{3}) << format;
    EXPECT_EQ(resumed_at(), 3) << format;
    EXPECT_EQ(fs::exists(dir_ / "save/optimizer_000002.pth"), false) << format;
    fs::remove_all(dir_ / "save");
    fs::copy(copy / "save", dir_ / "save", fs::copy_options::recursive);
  }
}

TEST_P(EarlierRun, LeavesNothingThatFollowsWhereItIsRewound) {
  PretrainConfig back = config(5);
  back.checkpoint.overwrite = true;
  if (pairs())
    back.checkpoint.number = 1;
  else
    back.checkpoint.load = dir_ / "save/iter_0000004";
  const std::set<int64_t> kept{2, 4};
  EXPECT_EQ(loadable_during(back), kept);
  std::set<int64_t> after = kept;
  after.insert(5);
  EXPECT_EQ(loadable(), after);
  EXPECT_EQ(resumed_at(), 5);
}

// A run that begins with the weights of the run that it overwrites needs them until it has saved.
TEST_P(EarlierRun, IsKeptUntilTheRunWithItsWeightsHasSaved) {
  PretrainConfig c = config(3);
  c.checkpoint.load = c.checkpoint.save;
  c.checkpoint.finetune = c.checkpoint.overwrite = true;
  EXPECT_EQ(loadable_during(c), std::set<int64_t>{6});
  EXPECT_EQ(loadable(), std::set<int64_t>{3});
  EXPECT_EQ(resumed_at(), 3);
}

// What can be refused is refused before anything of the earlier run is removed.
TEST_P(EarlierRun, StaysWhereTheRunThatOverwritesItIsRefused) {
  PretrainConfig c = config(4);
  c.checkpoint.overwrite = true;
  DataSets few = tiny_data();
  few.train.size = 3;
  const std::string before = state();
  EXPECT_THROW(train(c, few, nullptr), Error);
  EXPECT_EQ(state(), before);
}

// A run that has nothing left to do saves nothing that could take the place of the earlier run.
TEST_P(EarlierRun, StaysWhereTheRunThatOverwritesItDoesNoStep) {
  PretrainConfig c = config(4);
  c.train.iters = 4;
  c.checkpoint.save = c.checkpoint.load = dir_ / "other";
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 4);
  c.checkpoint.save = dir_ / "save";
  c.checkpoint.overwrite = true;
  const std::string before = state();
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 4);
  EXPECT_EQ(state(), before);
}

TEST_P(EarlierRun, IsNoneWhereOnlyItsLogsAreLeft) {
  for (const auto& entry : fs::directory_iterator(dir_ / "save")) fs::remove_all(entry.path());
  write_file(dir_ / "save/train.log", "step 1\n");
  EXPECT_EQ(train(config(2), tiny_data(), nullptr).iteration, 2);
}

// A checkpoint of the same iteration that replaces another is a new one, where a tracker names it.
TEST_P(EarlierRun, HasANewestCheckpoint) {
  EXPECT_FALSE(newest_checkpoint(dir_ / "none"));
  const auto newest = newest_checkpoint(dir_ / "save");
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->iteration, 6);
  EXPECT_EQ(newest, newest_checkpoint(dir_ / "save"));
  PretrainConfig again = config(6);
  again.checkpoint.overwrite = true;
  train(again, tiny_data(), nullptr);
  const auto replaced = newest_checkpoint(dir_ / "save");
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->iteration, 6);
  EXPECT_EQ(replaced == newest, pairs());
}

INSTANTIATE_TEST_SUITE_P(Formats, EarlierRun, testing::Values("megalith", "torch", "torch_dist", "pth"),
                         [](const auto& format) { return std::string(format.param); });

// A folder with another program's model is refused: nothing in it would be replaced, but it would then hold
// two models.
TEST(ForeignModel, IsNoFolderToSaveTo) {
  for (const char* name : {"config.json", "adapter_config.json", "model.safetensors", "m.gguf"}) {
    const TempDir dir;
    fs::create_directory(dir / "save");
    write_file(dir / "save/" + name, "{}");
    PretrainConfig c = tiny_config();
    c.checkpoint.save = dir / "save";
    for (const Trained trained : {Trained::kModel, Trained::kTuned})
      EXPECT_NE(refusal_to_replace(c.checkpoint, nullptr, trained).find("another program's model"),
                std::string::npos)
          << name;
  }
}

}  // namespace
}  // namespace megalith::test

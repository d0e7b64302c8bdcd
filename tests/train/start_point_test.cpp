#include "libcore/train/start_point.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/io/file.h"
#include "libcore/train/loop.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/train/tiny_run.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using test::tiny_config;
using test::tiny_data;

/// A trained checkpoint in dir/s, and its log.
class Start : public testing::Test {
 protected:
  Start() {
    before_ = set_log_sink([this](const std::string& line) { log_ += line + "\n"; });
    PretrainConfig config = tiny_config();
    config.checkpoint.save = dir_ / "s";
    config.train.exit_interval = 10;
    config.train.eval_iters = 0;
    train(config, tiny_data(), nullptr);
    log_.clear();
  }
  ~Start() override { set_log_sink(before_); }

  /// The losses of a run that loads `from`, at most three steps.
  std::vector<double> losses(const std::string& from, bool finetune = false) {
    PretrainConfig config = tiny_config();
    config.checkpoint.load = from;
    config.checkpoint.finetune = finetune;
    config.train.eval_iters = 0;
    config.train.log_json = dir_ / "log";
    config.train.iters = 20;
    const int64_t begun = finetune ? 0 : 10;
    config.train.exit_interval = begun + 3;
    fs::remove(config.train.log_json);
    train(config, tiny_data(), nullptr);
    return test::train_losses(config.train.log_json);
  }
  std::string complaint(const std::string& load, ErrorKind kind) {
    CheckpointConfig config;
    config.load = load;
    try {
      find_start(config, tiny_config().model);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    ADD_FAILURE() << load << " was accepted";
    return "";
  }

  TempDir dir_;
  std::string log_;
  LogSink before_;
};

TEST_F(Start, TakesAnIterationFolderAsItsRoot) {
  const std::vector<double> root = losses(dir_ / "s");
  EXPECT_EQ(root.size(), 3U);
  EXPECT_EQ(losses(dir_ / "s/iter_0000010"), root);
}

TEST_F(Start, TakesTheWeightsOfAHuggingFaceFolder) {
  const ModelSource ours(dir_ / "s");
  export_hf({.source = ours}, dir_ / "hf");
  const std::vector<double> want = losses(dir_ / "s", true);  // the same weights, from step 0
  log_.clear();
  EXPECT_EQ(losses(dir_ / "hf", true), want);
  EXPECT_NE(log_.find("hf holds weights alone: training begins at iteration 0"), std::string::npos) << log_;
  EXPECT_EQ(log_.find("random values"), std::string::npos) << log_;
}

TEST_F(Start, RefusesAHuggingFaceModelOfAnotherShape) {
  const ModelSource ours(dir_ / "s");
  export_hf({.source = ours}, dir_ / "hf");
  PretrainConfig config = tiny_config();
  config.model.layers = 3;
  config.checkpoint.load = dir_ / "hf";
  try {
    train(config, tiny_data(), nullptr);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("--num-layers: checkpoint 2, command line 3"), std::string::npos)
        << error.what();
  }
}

// A first save is killed between its folder's name and its tracker's.
TEST_F(Start, TakesTheOnlyCheckpointWhereTheTrackerIsMissing) {
  const std::vector<double> want = losses(dir_ / "s");
  fs::remove(dir_.path() / "s/latest_checkpointed_iteration.txt");
  EXPECT_EQ(losses(dir_ / "s"), want);
}

TEST_F(Start, DoesNotBeginAnewWhereOnlyTheTrackerIsMissing) {
  fs::remove(dir_.path() / "s/latest_checkpointed_iteration.txt");
  fs::copy(dir_.path() / "s/iter_0000010", dir_.path() / "s/iter_0000005", fs::copy_options::recursive);
  EXPECT_NE(complaint(dir_ / "s", ErrorKind::kData).find("s/iter_00000"), std::string::npos);
}

TEST_F(Start, IsFreshInAFolderThatIsEmptyOrMissing) {
  CheckpointConfig config;
  config.load = dir_ / "none";
  EXPECT_FALSE(find_start(config, tiny_config().model));
  EXPECT_NE(log_.find("starting from random values"), std::string::npos);
  config.exit_on_missing = true;
  EXPECT_THROW(find_start(config, tiny_config().model), Error);
}

// A run file's key and PaddleNLP's options want a checkpoint too, without the option that Megatron has for
// it.
TEST_F(Start, SaysWhoNamedWhatIsMissing) {
  CheckpointConfig config;
  config.load = dir_ / "none";
  config.load_named_by = "run.yaml:7: load_checkpoint";
  config.exit_on_missing = true;
  try {
    find_start(config, tiny_config().model);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
    EXPECT_TRUE(text.starts_with("run.yaml:7: load_checkpoint: " + config.load)) << text;
    EXPECT_NE(text.find("give the folder of one"), std::string::npos) << text;
    EXPECT_EQ(text.find("--exit-on-missing-checkpoint"), std::string::npos) << text;
  }
}

TEST_F(Start, TellsTheArgsOfEachKind) {
  const ModelSource ours(dir_ / "s");
  export_hf({.source = ours}, dir_ / "hf");
  CheckpointConfig from;
  for (const char* folder : {"s", "hf"}) {
    from.load = dir_ / folder;
    const auto saved = saved_args(from);
    ASSERT_TRUE(saved) << folder;
    EXPECT_EQ(saved->args["num_layers"].as_int(), 2) << folder;
    EXPECT_EQ(saved->args["hidden_size"].as_int(), 16) << folder;
  }
  from.load = dir_ / "none";
  EXPECT_FALSE(saved_args(from));
}

}  // namespace
}  // namespace megalith

#include "libcore/train/saves/start_point.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/train/run/loop.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using test::tiny_config;
using test::tiny_data;

/// Provides a checkpoint of a short run in dir_/s, and the captured log.
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

  /// The losses of a run of at most three steps that loads `from`.
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

  /// Replaces a file of the checkpoint, and its size and checksum in the index.
  void rewrite(const std::string& name, const std::string& contents) const {
    const std::string folder = dir_ / "s/iter_0000010", index_file = folder + "/" + kIndexFile;
    Index index = parse_index(read_file(index_file), index_file);
    for (IndexedFile& file : index.files)
      if (file.name == name) file = {name, contents.size(), xxh64(contents)};
    write_file(folder + "/" + name, contents);
    write_file(index_file, dump_index(index));
  }

  TempDir dir_;
  std::string log_;
  LogSink before_;
};

// The options that a user must add to the command after a stop. None are needed if --load reads what --save
// wrote.
TEST(OptionsToResume, AreThoseThatTheCommandNeeds) {
  const TempDir dir;
  const std::string st = dir / "st";
  fs::create_directory(st);
  CheckpointConfig c;
  c.save = st;
  EXPECT_EQ(options_to_resume(c, 19).text(), "--load " + st);
  c.load = st + "/../st/";
  EXPECT_EQ(options_to_resume(c, 19).text(), "");
  c.finetune = true;
  EXPECT_EQ(options_to_resume(c, 19).text(), "--no-finetune");
  c.load = st + "/iter_0000005";
  EXPECT_EQ(options_to_resume(c, 19).text(), "--load " + st + " --no-finetune");
  c.finetune = false;
  c.load_named_by = "--resume-from-checkpoint";
  EXPECT_EQ(options_to_resume(c, 19).text(), "--resume-from-checkpoint " + st);
  CheckpointConfig pairs;
  pairs.save = st;
  pairs.format = checkpoint_format("pth");
  EXPECT_EQ(options_to_resume(pairs, 19).text(), "--load " + st);  // no pair has been saved
  pairs.number = 5;
  pairs.format = checkpoint_format("megalith");
  EXPECT_EQ(options_to_resume(pairs, 19).text(), "--load " + st + " in place of --checkpoint 5");
  EXPECT_EQ(options_to_resume(pairs, 19).words, (std::vector<std::string>{"--load", st}));
  pairs.number.reset();
  pairs.load = st;
  pairs.format = checkpoint_format("pth");
  EXPECT_EQ(options_to_resume(pairs, 19).text(), "");
}

TEST_F(Start, TakesAnIterationFolderAsItsRoot) {
  const std::vector<double> root = losses(dir_ / "s");
  EXPECT_EQ(root.size(), 3U);
  EXPECT_EQ(losses(dir_ / "s/iter_0000010"), root);
}

TEST_F(Start, TakesTheWeightsOfAHuggingFaceFolder) {
  const ModelSource ours(dir_ / "s");
  export_hf({.source = ours}, dir_ / "hf");
  const std::vector<double> want = losses(dir_ / "s", true);  // losses of the same weights, from step 0
  log_.clear();
  EXPECT_EQ(losses(dir_ / "hf", true), want);
  EXPECT_NE(log_.find("hf holds only weights: training begins at iteration 0"), std::string::npos) << log_;
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

// The first save was killed after it renamed its folder and before it wrote the tracker: the run uses the
// folder.
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

TEST_F(Start, TakesTheCheckpointOfAStep) {
  fs::copy(dir_ / "s/iter_0000010", dir_ / "s/iter_0000005", fs::copy_options::recursive);
  CheckpointConfig config;
  config.load = dir_ / "s";
  config.step = 5;
  take_step(config);
  EXPECT_EQ(config.load, dir_ / "s/iter_0000005");
  config.save = dir_ / "s";
  EXPECT_EQ(options_to_resume(config, 7).text(), "--load " + config.save + " in place of --ckpt-step 5");
}

// The refusal names the steps that there are, and how pairs of another tool's form are chosen.
TEST_F(Start, NamesTheStepsThatThereAre) {
  const auto refusal = [](const std::string& folder) -> std::string {
    CheckpointConfig config;
    config.load = folder;
    config.step = 7;
    try {
      take_step(config);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "accepted";
  };
  fs::copy(dir_ / "s/iter_0000010", dir_ / "s/iter_0000005", fs::copy_options::recursive);
  EXPECT_EQ(refusal(dir_ / "s"),
            "--ckpt-step 7: --load " + (dir_ / "s") +
                " holds no checkpoint of this step (iter_0000007); there are those of 5, "
                "10: give one of them, or leave it out to load the newest");
  fs::create_directory(dir_ / "pairs");
  for (const char* name : {"model_000003.pth", "model_000005.pth"}) write_file(dir_ / "pairs/" + name, "");
  EXPECT_NE(
      refusal(dir_ / "pairs").find("; give --save " + (dir_ / "pairs") + " --checkpoint N, with N 3 or 5"),
      std::string::npos);
  EXPECT_NE(refusal(dir_ / "none").find("holds no checkpoint of this step"), std::string::npos);
}

// The run begins at a step before the newest one and would replace what follows.
TEST_F(Start, IsRefusedBeforeTheNewestStepOfSave) {
  fs::copy(dir_ / "s/iter_0000010", dir_ / "s/iter_0000020", fs::copy_options::recursive);
  write_file(dir_ / "s/latest_checkpointed_iteration.txt", "20");
  PretrainConfig config = tiny_config();
  config.checkpoint.load = config.checkpoint.save = dir_ / "s";
  config.checkpoint.step = 10;
  take_step(config.checkpoint);
  config.train.exit_interval = 12;
  try {
    train(config, tiny_data(), nullptr);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    const std::string text = error.what();
    for (const char* part : {"begins at iteration 10 and would replace what follows",
                             "in place of --ckpt-step 10", "give another folder, or --overwrite-output-dir"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

// Without the refusal, a run would start from random values in the folder of the run with the damaged
// checkpoint.
TEST_F(Start, RefusesATrackerWhoseCheckpointIsMissingOrDamaged) {
  PretrainConfig config = tiny_config();
  config.checkpoint.load = config.checkpoint.save = dir_ / "s";
  fs::copy(dir_.path() / "s/iter_0000010", dir_.path() / "s/iter_0000005", fs::copy_options::recursive);
  const auto complaint_of_run = [&]() -> std::string {
    try {
      train(config, tiny_data(), nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
      return error.what();
    }
    return "accepted";
  };
  fs::remove(dir_.path() / "s/iter_0000010/index.json");
  const std::string damaged = complaint_of_run();
  EXPECT_NE(damaged.find("latest_checkpointed_iteration.txt: names"), std::string::npos) << damaged;
  EXPECT_NE(damaged.find("s/iter_0000010, which holds no checkpoint"), std::string::npos) << damaged;
  fs::remove_all(dir_.path() / "s/iter_0000010");
  const std::string missing = complaint_of_run();
  EXPECT_NE(missing.find("s/iter_0000010, which is not there"), std::string::npos) << missing;
  EXPECT_NE(missing.find("s/iter_0000005"), std::string::npos) << missing;
  EXPECT_EQ(read_file(dir_ / "s/latest_checkpointed_iteration.txt"), "10");
  EXPECT_NE(complaint(dir_ / "s", ErrorKind::kNoInput).find("iter_0000010"), std::string::npos);
  EXPECT_NE(complaint(dir_ / "s/iter_0000007", ErrorKind::kNoInput).find("is not there"), std::string::npos);
  CheckpointConfig args;
  args.load = dir_ / "s";
  EXPECT_THROW(saved_args(args), Error);
}

// The files have the checksums that the index names, so that only their contents can be refused.
TEST_F(Start, RefusesAStateThatNoRunReached) {
  const Json sound = Json::load(dir_ / "s/iter_0000010/state.json");
  int numbers = 0;
  for (const auto& [key, value] : sound.as_object()) {
    if (!value.is_number()) continue;
    ++numbers;
    for (const Json& bad : {Json(-1), Json(int64_t{1} << 62), Json("x"), Json::array(), Json(1.5), Json()}) {
      Json changed = sound;
      changed.set(key, bad);
      rewrite(kStateFile, changed.dump());
      const std::string found = complaint(dir_ / "s", ErrorKind::kData);
      EXPECT_NE(found.find("iter_0000010/state.json: " + key), std::string::npos)
          << bad.dump() << ": " << found;
    }
  }
  EXPECT_GE(numbers, 5);
  Json other = sound;
  other.set("iteration", 9);
  rewrite(kStateFile, other.dump());
  EXPECT_NE(complaint(dir_ / "s", ErrorKind::kData).find("iteration is 9, but index.json says 10"),
            std::string::npos);
  rewrite(kStateFile, sound.dump());
  ASSERT_EQ(losses(dir_ / "s").size(), 3U);
}

TEST_F(Start, NamesTheFileThatHoldsWrongLosses) {
  for (const char* text :
       {R"({"every": 0, "train": [], "valid": []})", R"({"every": 1, "train": 3, "valid": []})",
        R"({"every": 1, "train": [[1]], "valid": []})", R"({"every": 1, "train": [[-1, 2.0]], "valid": []})",
        R"({"every": 1, "train": [["x", 2.0]], "valid": []})", R"({"every": 1})", "[]"}) {
    rewrite(kLossesFile, text);
    const std::string found = complaint(dir_ / "s", ErrorKind::kData);
    EXPECT_NE(found.find("iter_0000010/losses.json: "), std::string::npos) << found;
  }
}

TEST_F(Start, NamesTheFileThatHoldsWrongArgs) {
  const Json sound = Json::load(dir_ / "s/iter_0000010/args.json");
  PretrainConfig config = tiny_config();
  config.checkpoint.load = dir_ / "s";
  for (const char* key : {"num_layers", "norm_epsilon", "seed", "lr", "global_batch_size", "swiglu"}) {
    Json changed = sound;
    changed.set(key, Json::Array{"x"});
    rewrite(kArgsFile, changed.dump());
    try {
      train(config, tiny_data(), nullptr);
      ADD_FAILURE() << key << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      EXPECT_NE(std::string(error.what()).find(concat("iter_0000010/args.json: ", key)), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(Start, SaysWhatIsNoCheckpoint) {
  const ModelSource ours(dir_ / "s");
  export_hf({.source = ours}, dir_ / "trainer/checkpoint-500");
  const std::string hf = dir_ / "trainer/checkpoint-500";
  for (const char* file : {"/model.safetensors", "/config.json"})
    EXPECT_NE(complaint(hf + file, ErrorKind::kData).find("give its folder, " + hf), std::string::npos);
  EXPECT_NE(complaint(dir_ / "trainer", ErrorKind::kNoInput).find("give one of " + hf), std::string::npos);
  fs::create_directory(dir_.path() / "gguf");
  write_file(dir_ / "gguf/model.gguf", "GGUF");
  EXPECT_NE(complaint(dir_ / "gguf", ErrorKind::kData).find("GGUF"), std::string::npos);
  fs::create_directory(dir_.path() / "peft");
  write_file(dir_ / "peft/adapter_config.json", "{}");
  EXPECT_NE(complaint(dir_ / "peft", ErrorKind::kData).find("--merge-adapter"), std::string::npos);
  fs::create_directory(dir_.path() / "other");
  write_file(dir_ / "other/notes.txt", "none");
  EXPECT_NE(complaint(dir_ / "other", ErrorKind::kNoInput).find("holds no model"), std::string::npos);
  EXPECT_NE(complaint("megalith-test-nobody/model", ErrorKind::kNoInput).find("hf download"),
            std::string::npos);
}

TEST_F(Start, WarnsOfANameThatMayBeAModelsId) {
  CheckpointConfig config;
  config.load = "megalith-test-nothing";
  EXPECT_FALSE(find_start(config, tiny_config().model));
  EXPECT_NE(log_.find("hf download megalith-test-nothing"), std::string::npos) << log_;
  log_.clear();
  config.save = config.load;
  EXPECT_FALSE(find_start(config, tiny_config().model));
  EXPECT_EQ(log_.find("hf download"), std::string::npos) << log_;
}

// Without the refusal, a run would start from random values and write its checkpoints among that model's
// files.
TEST_F(Start, RefusesAnotherToolsModelInTheFolderOfSave) {
  const auto write = [&](const std::string& file) {
    fs::create_directories(fs::path(dir_ / file).parent_path());
    write_file(dir_ / file, "{}");
  };
  for (const char* file :
       {"trainer/checkpoint-500/config.json", "trainer/args.txt", "peft/adapter_config.json",
        "many/checkpoint-20/adapter_config.json", "gguf/model.gguf", "weights/model.safetensors",
        "own/checkpoint-500/notes.txt", "own/events.txt"})
    write(file);
  CheckpointConfig config;
  const auto said = [&](const char* folder, Trained trained) -> std::string {
    config.load = config.save = dir_ / folder;
    try {
      EXPECT_FALSE(find_start(config, tiny_config().model, trained));
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kNoInput);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(said("trainer", Trained::kModel).find("trainer/checkpoint-500"), std::string::npos);
  EXPECT_NE(said("many", Trained::kModel).find("many/checkpoint-20"), std::string::npos);
  EXPECT_NE(said("peft", Trained::kModel).find("megalith-convert MODEL --merge-adapter "), std::string::npos);
  EXPECT_NE(said("gguf", Trained::kModel).find("GGUF"), std::string::npos);
  EXPECT_NE(said("weights", Trained::kModel).find("without the config.json"), std::string::npos);
  EXPECT_EQ(log_, "");
  EXPECT_EQ(said("own", Trained::kModel), "");
  EXPECT_EQ(said("peft", Trained::kTuned), "") << "megalith-finetune writes such files itself";
}

// The tab key may complete --load to a file in a checkpoint. The message then names the folder to give.
TEST_F(Start, NamesTheFolderOfOneFile) {
  const std::string folder = dir_ / "s/iter_0000010";
  for (const char* file : {"/data_00000.safetensors", "/index.json"}) {
    ASSERT_TRUE(file_exists(folder + file)) << file;
    const std::string text = complaint(folder + file, ErrorKind::kData);
    EXPECT_TRUE(text.ends_with(": is one file of a checkpoint; give its folder, " + folder)) << text;
  }
  fs::create_directory(dir_.path() / "pairs");
  write_file(dir_ / "pairs/model_000001.pth", "");
  const std::string pth = complaint(dir_ / "pairs/model_000001.pth", ErrorKind::kData);
  EXPECT_NE(pth.find("give its folder, " + (dir_ / "pairs") + ","), std::string::npos) << pth;
}

// A first run may write other files, such as TensorBoard's, before its first checkpoint. A repeated command
// must not mistake them for a model.
TEST_F(Start, IsFreshInTheFolderOfSaveWhateverItHolds) {
  fs::create_directory(dir_.path() / "new");
  write_file(dir_ / "new/events.txt", "none");
  CheckpointConfig config;
  config.load = config.save = dir_ / "new";
  EXPECT_FALSE(find_start(config, tiny_config().model));
}

TEST_F(Start, FindsAModelByItsIdOnTheHub) {
  const ModelSource ours(dir_ / "s");
  const std::string model = dir_ / "hub/models--megalith-test--tiny";
  fs::create_directories(model + "/refs");
  write_file(model + "/refs/main", "abc");
  export_hf({.source = ours}, model + "/snapshots/abc");
  const test::Variable hub("HF_HUB_CACHE", dir_ / "hub");
  const std::vector<double> want = losses(model + "/snapshots/abc", true);
  EXPECT_EQ(losses("megalith-test/tiny", true), want);
  CheckpointConfig from;
  from.load = "megalith-test/tiny";
  ASSERT_TRUE(saved_args(from));
}

// A run file's key and PaddleNLP's options require a checkpoint, even without Megatron's
// --exit-on-missing-checkpoint. The message names the key or option.
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

// As Megatron's checkpoints, which do not hold the length. Without one the rate would never fall.
TEST(AgreedSchedule, TakesTheLengthOfAnAnnealingPhaseFromTheCommandLine) {
  StartPoint start;
  start.path = "c";
  start.schedule = LrSchedule{.max = 1, .decay = LrDecay::kWsd, .decay_end = 100};
  CheckpointConfig config;
  config.use_checkpoint_scheduler = true;
  try {
    agreed_schedule({.max = 1, .decay = LrDecay::kLinear, .decay_end = 100}, start, config);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(
        std::string(error.what()).find("c: the checkpoint's schedule is --lr-decay-style WSD, but it does"),
        0U)
        << error.what();
  }
  const LrSchedule ours{.max = 2, .decay = LrDecay::kWsd, .decay_end = 100, .wsd = 20};
  const LrSchedule taken = agreed_schedule(ours, start, config);
  EXPECT_EQ(taken.max, 1);
  EXPECT_EQ(taken.wsd, 20);
}

}  // namespace
}  // namespace megalith

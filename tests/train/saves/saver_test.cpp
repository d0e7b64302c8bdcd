#include "libcore/train/saves/saver.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/files/file.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/saves/checkpoint_store.h"
#include "libcore/train/step/rank_state.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/files.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class SaverTest : public testing::Test {
 protected:
  SaverTest() : before_(set_log_sink([this](const std::string& line) { log_ += line + "\n"; })) {}
  ~SaverTest() override { set_log_sink(before_); }

  /// A trainer after two steps.
  std::unique_ptr<Trainer> trained(SaveCopy copy) { return trained(copy, *backend_); }
  std::unique_ptr<Trainer> trained(SaveCopy copy, Backend& backend) {
    const PretrainConfig c = test::tiny_config();
    RunShape run{c.model, c.parallel, c.train, copy};
    run.train.device = backend.name();
    auto trainer = std::make_unique<Trainer>(run, backend, *world_);
    trainer->initialize();
    for (int i = 0; i < 2; ++i) step(*trainer);
    return trainer;
  }
  static void step(Trainer& trainer) { trainer.step(test::tiny_sample, 0, 1e-2); }

  SaverOptions options(const std::string& name) {
    return {.root = dir_ / name,
            .store = store_of(checkpoint_format("megalith")),
            .peer_timeout = std::chrono::seconds(10),
            .complete = [this](const SaveReport& report) {
              complete_.push_back(report.iteration);
              EXPECT_TRUE(file_exists(report.path + "/index.json")) << report.path;
              EXPECT_EQ(report.number, std::nullopt);  // our format counts no saves
            }};
  }
  CheckpointExtras extras(bool optimizer = true) const {
    return {.args = Json::object(), .schedule = {}, .optimizer = optimizer};
  }
  std::map<std::string, uint64_t> checksums(const std::string& name) const {
    const CheckpointReader reader(dir_ / name);
    reader.verify();
    std::map<std::string, uint64_t> sums;
    for (const IndexedTensor& tensor : reader.index().tensors) sums[tensor.name] = tensor.blocks[0].checksum;
    return sums;
  }

  const test::TempDir dir_;
  std::string log_;
  LogSink before_;
  const std::unique_ptr<Backend> backend_ = make_cpu_backend();
  const std::unique_ptr<Communicator> world_ = make_self_comm();
  std::vector<int64_t> complete_;
};

TEST_F(SaverTest, WritesWhatWasThereWhenTheSaveBegan) {
  const auto waits = trained(SaveCopy::kNone);
  Saver(*waits, options("waited")).start({.iteration = 2}, extras());
  EXPECT_EQ(complete_, (std::vector<int64_t>{2}));

  const auto continuing = trained(SaveCopy::kAll);
  Saver saver(*continuing, options("background"));
  EXPECT_TRUE(saver.in_background());
  saver.start({.iteration = 2}, extras());
  EXPECT_EQ(saver.begun(), 2);
  // Trains on, whether the checkpoint is already written or not.
  for (int i = 0; i < 5; ++i) step(*continuing);
  saver.finish();
  EXPECT_EQ(complete_, (std::vector<int64_t>{2, 2}));
  EXPECT_NE(log_.find("; training continues while they are written"), std::string::npos) << log_;
  EXPECT_EQ(checksums("background"), checksums("waited"));

  saver.start({.iteration = 7}, extras());
  saver.finish();
  EXPECT_NE(checksums("background"), checksums("waited"));
}

// In some order of its work, the device would do the next update before the copy.
TEST_F(SaverTest, AGpuCopiesWhileItComputesTheNextGradients) {
  const std::unique_ptr<Backend> gpu = test::make_emulated_backend();
  const auto waits = trained(SaveCopy::kNone, *gpu);
  Saver(*waits, options("waited")).start({.iteration = 2}, extras());
  const auto waited = checksums("waited");
  for (const unsigned order : {1U, 2U, 3U, 4U, 5U}) {
    const test::OwnEmulatedGpus gpus(order);
    const std::string number = std::to_string(order);
    const auto continuing = trained(SaveCopy::kAll, *gpu);
    Saver saver(*continuing, options("beside" + number));
    saver.start({.iteration = 2}, extras());
    for (int i = 0; i < 3; ++i) {
      step(*continuing);
      saver.advance();
    }
    saver.finish();
    EXPECT_EQ(checksums("beside" + number), waited) << order;
  }
  EXPECT_NE(log_.find("beside training, which continues"), std::string::npos) << log_;
  EXPECT_EQ(complete_.size(), 6U);
}

TEST_F(SaverTest, AGpusCopyIsWrittenAlsoIfNoStepFollows) {
  const std::unique_ptr<Backend> gpu = test::make_emulated_backend();
  const auto trainer = trained(SaveCopy::kAll, *gpu);
  Saver(*trainer, options("run")).start({.iteration = 2}, extras());
  EXPECT_EQ(CheckpointReader(dir_ / "run").iteration(), 2);
}

// Each save waits for the previous one, and reuses the memory of the copy.
TEST_F(SaverTest, OneSaveIsUnderWayAtATimeAndOldOnesGo) {
  const auto trainer = trained(SaveCopy::kAll);
  SaverOptions o = options("run");
  o.keep_last = 2;
  Saver saver(*trainer, o);
  for (int64_t iteration = 1; iteration <= 4; ++iteration) {
    saver.start({.iteration = iteration}, extras());
    EXPECT_EQ(static_cast<int64_t>(complete_.size()), iteration - 1);
    step(*trainer);
  }
  while (complete_.size() < 4) saver.advance();
  EXPECT_EQ(complete_, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_FALSE(fs::exists(dir_ / "run/iter_0000002"));
  for (const char* kept : {"run/iter_0000003", "run/iter_0000004"}) CheckpointReader(dir_ / kept).verify();
}

TEST_F(SaverTest, EachSaveRemovesTheOneBeforeThatIsNotRetained) {
  const auto trainer = trained(SaveCopy::kNone);
  SaverOptions o = options("run");
  o.retain_interval = 2;
  Saver saver(*trainer, o);
  std::vector<std::string> left;
  for (int64_t iteration = 1; iteration <= 5; ++iteration) {
    saver.start({.iteration = iteration}, extras());
    saver.finish();
    std::string now;
    for (int64_t old = 1; old <= iteration; ++old)
      if (fs::exists(concat(dir_ / "run", "/", iteration_folder(old)))) now += std::to_string(old);
    left.push_back(now);
  }
  EXPECT_EQ(left, (std::vector<std::string>{"1", "2", "23", "24", "245"}));
}

TEST_F(SaverTest, ParametersAloneTakeTheirOwnCopy) {
  const auto trainer = trained(SaveCopy::kParameters);
  // Computed by hand: 7328 parameters (see memory_test.cpp) of four bytes, without gaps.
  EXPECT_EQ(trainer->memory().save_copy, 7328U * 4);
  Saver saver(*trainer, options("run"));
  saver.start({.iteration = 1}, extras(false));
  saver.finish();
  EXPECT_EQ(trained(SaveCopy::kAll)->memory().save_copy, 3U * 7328 * 4);
}

// A checkpoint that needs more bytes than planned is refused, because it does not fit the copy.
TEST_F(SaverTest, ACheckpointOfAnotherSizeThanThePlansIsRefused) {
  const auto trainer = trained(SaveCopy::kParameters);
  Saver saver(*trainer, options("run"));
  EXPECT_THROW(saver.start({.iteration = 1}, extras(true)), Error);
  EXPECT_FALSE(file_exists(dir_ / "run"));
}

TEST_F(SaverTest, AFailureComesWithTheNextCallAndTheOldCheckpointStays) {
  const auto trainer = trained(SaveCopy::kAll);
  Saver saver(*trainer, options("run"));
  saver.start({.iteration = 1}, extras());
  saver.finish();
  write_file(dir_ / "run/iter_0000002", "in the way");
  saver.start({.iteration = 2}, extras());
  EXPECT_THROW(saver.finish(), Error);
  EXPECT_EQ(CheckpointReader(dir_ / "run").iteration(), 1);
  EXPECT_EQ(complete_, (std::vector<int64_t>{1}));
}

/// A trainer on the CPU, or with padding of its vocabulary on the emulated GPU.
class Side {
 public:
  Side(const PretrainConfig& config, bool gpu, const test::TempDir& dir) : dir_(dir) {
    backend_ = gpu ? test::make_emulated_backend() : make_cpu_backend();
    RunShape run{config.model, config.parallel, config.train};
    run.train.device = backend_->name();
    if (gpu) run.vocabulary = gpu_vocabulary(0);
    trainer_.emplace(run, *backend_, *world_);
    trainer_->initialize();
  }
  void step() { trainer_->step(test::tiny_sample, 0, 1e-2); }
  std::map<std::string, std::string> save(const std::string& name) {
    Saver saver(*trainer_, {.root = dir_ / name,
                            .store = store_of(checkpoint_format("megalith")),
                            .peer_timeout = std::chrono::seconds(10)});
    saver.start({.iteration = trainer_->optimizer().steps()}, {.args = Json::object(), .schedule = {}});
    saver.finish();
    const std::string folder = CheckpointReader(dir_ / name).path();
    auto contents = test::checkpoint_contents(folder);
    contents["index.json"] = read_file(folder + "/index.json");
    return contents;
  }
  void load(const std::string& name) {
    const CheckpointReader reader(dir_ / name);
    load_params(reader, trainer_->params(), trainer_->stream(), ParamSource::kMasters);
    trainer_->optimizer().take_values(trainer_->stream());
    load_optimizer(reader, reader.iteration(), trainer_->optimizer(), trainer_->stream());
  }

 private:
  const test::TempDir& dir_;
  std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Communicator> world_ = make_self_comm();
  std::optional<Trainer> trainer_;
};

// The vocabulary of 37 ids has 128 rows on the GPU. What is saved there has the same bytes as what the CPU
// saves of the same state: initial values, and values and moments of either side after steps.
TEST_F(SaverTest, WritesNoPaddingOfAGpu) {
  for (const bool bf16 : {false, true}) {
    PretrainConfig config = test::tiny_config();
    config.train.bf16 = bf16;
    const std::string format = bf16 ? "bf16" : "fp32";
    Side cpu(config, false, dir_), gpu(config, true, dir_);
    EXPECT_EQ(cpu.save(format + "-cpu-0"), gpu.save(format + "-gpu-0"));
    for (int i = 0; i < 2; ++i) gpu.step();
    const auto of_gpu = gpu.save(format + "-gpu-2");
    cpu.load(format + "-gpu-2");
    EXPECT_EQ(cpu.save(format + "-cpu-2"), of_gpu);
    cpu.step();
    const auto of_cpu = cpu.save(format + "-cpu-3");
    EXPECT_NE(of_cpu, of_gpu);
    gpu.load(format + "-cpu-3");
    EXPECT_EQ(gpu.save(format + "-gpu-3"), of_cpu);
  }
}

}  // namespace
}  // namespace megalith

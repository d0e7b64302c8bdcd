// megalith-pretrain with --device cuda on the emulated device (tests/emulator), compared with the same on the
// CPU; for the other programs see emulated_programs_test.cpp. Sums have another order on the device: fp32
// drifts by rounding alone, bf16 by the rounding of stored activations.
#include "tests/support/emulated_cuda.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/train/step/memory.h"
#include "tests/apps/pretrain/emulated_pretrain.h"
#include "tests/support/environment.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// The figures of a --log-json file's lines of one type.
std::vector<double> figures(const std::string& path, const std::string& type, const char* key) {
  std::vector<double> all;
  for (const Json& line : log_lines(path, type)) all.push_back(line[key].as_double());
  return all;
}

/// Trains small models on the CPU and on the emulated device.
class EmulatedCudaPretrain : public EmulatedPretrain {
 protected:
  void train_well(const std::string& options, const std::string& log) const {
    const CommandResult result = train(options + " --log-json " + log);
    ASSERT_EQ(result.code, 0) << result.all();
  }
  /// Trains 50 steps on both devices and compares losses and evaluations.
  void expect_same_curve(const std::string& model, double limit, int order) const {
    const EmulatedDeviceForPrograms device(order);
    const std::string options =
        model + " --hidden-size 32 --train-iters 50 --lr 0.003 --eval-interval 25 --eval-iters 1";
    train_well(options, "cpu.jsonl");
    train_well(options + " --device cuda", "cuda.jsonl");
    const std::vector<double> losses = figures(dir_ / "cpu.jsonl", "train", "loss");
    ASSERT_EQ(losses.size(), 50U);
    EXPECT_LT(losses.back(), losses.front());
    EXPECT_LE(worst_difference(losses, figures(dir_ / "cuda.jsonl", "train", "loss")), limit);
    EXPECT_LE(worst_difference(figures(dir_ / "cpu.jsonl", "valid", "loss"),
                               figures(dir_ / "cuda.jsonl", "valid", "loss")),
              limit);
  }
  static constexpr double kFp32 = 1e-5, kBf16 = 2e-3, kFp16 = 2.5e-4;
};

TEST_F(EmulatedCudaPretrain, TrainsGpt2WithDropoutAsTheCpuDoes) {
  expect_same_curve(kGpt2, kFp32, 1);
}
TEST_F(EmulatedCudaPretrain, TrainsGpt2InBf16AsTheCpuDoes) {
  expect_same_curve(kGpt2 + " --bf16", kBf16, 2);
}
// The first steps overflow: both devices skip the same ones and lower the scale of the loss alike.
TEST_F(EmulatedCudaPretrain, TrainsGpt2InFp16AsTheCpuDoes) {
  expect_same_curve(kGpt2 + " --fp16 --initial-loss-scale 4294967296", kFp16, 3);
  const std::vector<double> scales = figures(dir_ / "cpu.jsonl", "train", "loss_scale");
  EXPECT_LT(scales.back(), scales.front());
  EXPECT_EQ(figures(dir_ / "cuda.jsonl", "train", "loss_scale"), scales);
}
// Where the devices differ in a gradient's last bits, a moment may be rounded to the neighbour.
TEST_F(EmulatedCudaPretrain, TrainsWithABf16MomentAsTheCpuDoes) {
  constexpr double kNeighbours = 1e-4;
  expect_same_curve(kGpt2 + " --exp-avg-dtype bf16", kNeighbours, 2);
}
TEST_F(EmulatedCudaPretrain, TrainsLlamaAsTheCpuDoes) {
  expect_same_curve(kLlama, kFp32, 3);
}
TEST_F(EmulatedCudaPretrain, TrainsQwen3AsTheCpuDoes) {
  expect_same_curve(kQwen3, kFp32, 2);
}
TEST_F(EmulatedCudaPretrain, TrainsPhi3AsTheCpuDoes) {
  expect_same_curve(kPhi3, kFp32, 2);
}
TEST_F(EmulatedCudaPretrain, TrainsGptNeoXAsTheCpuDoes) {
  expect_same_curve(kGptNeoX, kFp32, 3);
}
TEST_F(EmulatedCudaPretrain, TrainsOlmo3AsTheCpuDoes) {
  expect_same_curve(kOlmo3, kFp32, 2);
}
TEST_F(EmulatedCudaPretrain, TrainsGraniteAsTheCpuDoes) {
  expect_same_curve(kGranite, kFp32, 2);
}
TEST_F(EmulatedCudaPretrain, TrainsLlamaInBf16AsTheCpuDoes) {
  expect_same_curve(kLlama + " --bf16", kBf16, 1);
}

// Token 60, which ends a document for this tokenizer, stands in the middle of the samples.
TEST_F(EmulatedCudaPretrain, KeepsDocumentsApartAsTheCpuDoes) {
  const EmulatedDeviceForPrograms device(2);
  const std::string joined =
      " --tokenizer-type NullTokenizer --vocab-size 60 --eval-iters 0 --train-iters 6 --attention-dropout 0 "
      "--hidden-dropout 0";
  const std::string apart = joined + " --reset-position-ids --reset-attention-mask";
  train_well(joined, "joined.jsonl");
  train_well(apart, "cpu.jsonl");
  train_well(apart + " --device cuda", "cuda.jsonl");
  const std::vector<double> losses = figures(dir_ / "cpu.jsonl", "train", "loss");
  EXPECT_LE(worst_difference(losses, figures(dir_ / "cuda.jsonl", "train", "loss")), kFp32);
  EXPECT_GT(worst_difference(losses, figures(dir_ / "joined.jsonl", "train", "loss")), 10 * kFp32);
}

// Part of the run goes in each order of the device's work, so a sum or a read that depends on it would show.
TEST_F(EmulatedCudaPretrain, ResumesBitForBitInEveryOrderOfWork) {
  const std::string options =
      " --device cuda --train-iters 6 --eval-interval 3 --eval-iters 1 --save-interval 2 "
      "--recompute-granularity "
      "full --recompute-method uniform";
  const auto save = [&](const std::string& folder, int order, const std::string& more) {
    const EmulatedDeviceForPrograms device(order);
    train_well(options + " --save " + folder + " --load " + folder + more, folder + ".jsonl");
  };
  save("whole", 1, "");
  save("parts", 2, " --exit-interval 2");
  save("parts", 3, " --exit-interval 4");
  save("parts", 1, "");
  for (const char* type : {"train", "valid"})
    EXPECT_EQ(figures(dir_ / "whole.jsonl", type, "loss"), figures(dir_ / "parts.jsonl", type, "loss"))
        << type;
  const auto contents = checkpoint_contents(dir_ / "whole/iter_0000006");
  EXPECT_EQ(contents, checkpoint_contents(dir_ / "parts/iter_0000006"));
  EXPECT_GE(contents.size(), 2U);
}

// The device copies a save's tensors while it computes the next step, whose update must wait for the copy.
// With odd orders the next step's kernels run before the copies where nothing holds them back.
TEST_F(EmulatedCudaPretrain, SavesTheStateOfAStepWhileTheNextOneRuns) {
  const auto save = [&](const std::string& folder, int order, const std::string& more) {
    const EmulatedDeviceForPrograms device(order);
    const CommandResult result =
        train("--device cuda --train-iters 5 --eval-iters 0 --save-interval 2 --save " + folder + more);
    EXPECT_EQ(result.code, 0) << result.all();
    return result.all().find("beside training, which continues") != std::string::npos;
  };
  EXPECT_FALSE(save("waited", 1, " --no-async-save"));
  for (const int order : {1, 2, 3, 4, 5}) EXPECT_TRUE(save(concat("order", order), order, ""));
  {
    const Variable refused("MEGALITH_EMULATOR_MEMORY_LOCK", "refused");
    EXPECT_TRUE(save("unlocked", 1, ""));
  }
  for (const char* iteration : {"/iter_0000002", "/iter_0000004", "/iter_0000005"})
    for (const char* folder : {"order1", "order2", "order3", "order4", "order5", "unlocked"})
      EXPECT_EQ(checkpoint_contents(dir_ / (folder + std::string(iteration))),
                checkpoint_contents(dir_ / ("waited" + std::string(iteration))))
          << folder << iteration;
}

// Two more steps may call the device only for their work, and each waits only for its results. A step has two
// micro-batches.
TEST_F(EmulatedCudaPretrain, AllocatesNothingAndWaitsOnceInAStep) {
  const auto calls = [&](int steps) {
    const EmulatedDeviceForPrograms device;
    const Variable counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
    train_well(kGpt2 + " --device cuda --eval-iters 0 --train-iters " + std::to_string(steps), "steps.jsonl");
    return Json::load(dir_ / "counts.json");
  };
  const Json few = calls(3), more = calls(5);
  for (const char* kind : {"allocations", "events", "host_functions"})
    EXPECT_EQ(few[kind].as_int(), more[kind].as_int()) << kind;
  EXPECT_EQ(more["waits"].as_int() - few["waits"].as_int(), 2);
  EXPECT_LT(few["kernels"].as_int(), more["kernels"].as_int());
  EXPECT_EQ(few["products"].as_int(), more["products"].as_int()) << "those of later steps are in graphs";
  EXPECT_EQ(more["graph_launches"].as_int() - few["graph_launches"].as_int(), 2 * 2);
}

// The device itself notes when a step, its micro-batches and its optimizer begin and end.
TEST_F(EmulatedCudaPretrain, TracesStepsWithoutHostFunctions) {
  const EmulatedDeviceForPrograms device;
  const Variable counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
  train_well(
      "--device cuda --train-iters 4 --eval-iters 0 --trace trace.json --profile-step-start 1 "
      "--profile-step-end 3",
      "steps.jsonl");
  EXPECT_EQ(Json::load(dir_ / "counts.json")["host_functions"].as_int(), 0);
  std::map<std::string, int> spans;
  std::vector<std::pair<double, double>> steps;
  const Json trace = Json::load(dir_ / "trace.json");
  for (const Json& event : trace["traceEvents"].as_array()) {
    if (event["ph"].as_string() != "X") continue;
    const std::string& name = event["name"].as_string();
    const double begin = event["ts"].as_double(), length = event["dur"].as_double();
    EXPECT_GE(length, 0) << name;
    ++spans[name];
    if (name == "step") steps.emplace_back(begin, begin + length);
  }
  for (const char* name : {"step", "F0.0", "F0.1", "B0.0", "B0.1", "optimizer"})
    EXPECT_EQ(spans[name], 2) << name;
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_GT(steps[0].second, steps[0].first);
  // In microseconds since 1970: a double has a quarter of one, and a begin and a length are rounded.
  EXPECT_GE(steps[1].first, steps[0].second - 0.5);
}

// 61 ids give rows of 61 logits, most of which would not begin at a multiple of 16 bytes in the head's
// products.
TEST_F(EmulatedCudaPretrain, MultipliesAlignedRowsAlone) {
  for (const std::string& model : {kGpt2, kLlama})
    for (const char* format : {"", " --bf16"}) {
      const EmulatedDeviceForPrograms device;
      const Variable counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
      train_well(model + format + " --hidden-size 32 --device cuda --eval-interval 1 --eval-iters 1 " +
                     "--train-iters 3",
                 "steps.jsonl");
      const Json calls = Json::load(dir_ / "counts.json");
      EXPECT_EQ(calls["unaligned_products"].as_int(), 0) << model << format;
      EXPECT_GT(calls["products"].as_int(), 20);
    }
}

// Padding is not saved, so a checkpoint fits both devices. Each resumes it bit for bit, whichever wrote it.
TEST_F(EmulatedCudaPretrain, ResumesWhatTheOtherDeviceSaved) {
  const EmulatedDeviceForPrograms emulated(2);
  const auto go = [&](const std::string& device, const std::string& folders, int steps) {
    train_well("--eval-iters 0 --train-iters 6 --device " + device + " --exit-interval " +
                   std::to_string(steps) + folders,
               "steps.jsonl");
  };
  for (const std::string first : {"cpu", "cuda"}) {
    go(first, " --save " + first, 2);
    for (const std::string second : {"cpu", "cuda"}) {
      const std::string from = " --load " + first + " --save ", whole = first + second + "-whole",
                        parts = first + second + "-parts";
      go(second, from + whole, 6);
      go(second, from + parts, 4);
      go(second, " --load " + parts + " --save " + parts, 6);
      EXPECT_EQ(checkpoint_contents(dir_ / (whole + "/iter_0000006")),
                checkpoint_contents(dir_ / (parts + "/iter_0000006")))
          << first << ' ' << second;
    }
  }
}

// 700 ids have 68 padding rows, which have no logits: a sample never holds one.
TEST_F(EmulatedCudaPretrain, WritesTheSamplesOfTheCpu) {
  const EmulatedDeviceForPrograms emulated(3);
  const std::string model = test::replaced(kModel, "--vocab-size 61 ", "") +
                            "--train-iters 4 --eval-interval 2 --eval-iters 1 --sample-prompt 'The first' " +
                            "--sample-tokens 8 --tokenizer-type HuggingFaceTokenizer --tokenizer-model " +
                            test_data("text/goldens/trained/tokenizer.json");
  std::vector<std::string> texts[2];
  for (const bool cuda : {false, true}) {
    const std::string log = cuda ? "cuda.jsonl" : "cpu.jsonl";
    const CommandResult result = run(model + " --log-json " + log + " --device " + (cuda ? "cuda" : "cpu"));
    ASSERT_EQ(result.code, 0) << result.all();
    for (const Json& line : lines(log, "sample")) texts[cuda].push_back(line["text"].as_string());
  }
  EXPECT_EQ(texts[0].size(), 2U);
  EXPECT_EQ(texts[1], texts[0]);
}

/// Runs with as much device memory as the estimate says that they need, and what is left to the driver. The
/// choice among algorithms, which comes before, must do with that, too. They have no graphs, which take no
/// memory of the emulated device (repeated_passes_test.cpp counts their nodes).
class EmulatedCudaMemory : public EmulatedCudaPretrain {
 protected:
  static constexpr size_t kReserve = size_t{32} << 20;
  /// The estimate of kModel on a small device, in bytes.
  static size_t needed(MomentType first_moments = MomentType::kFp32) {
    PretrainConfig config;
    config.train.first_moments = first_moments;
    config.model.layers = 2;
    config.model.hidden = 16;
    config.model.heads = 2;
    config.model.seq_length = config.model.max_positions = 12;
    config.model.vocab_size = 61;
    config.train.micro_batch = 2;
    config.train.global_batch = 4;
    config.train.device = "cuda";
    config.train.cuda_graphs = "none";
    config.finish();
    RunShape run = run_shape(config);
    run.vocabulary = gpu_vocabulary(kReserve);
    return run_memory(run).on_device();
  }
  CommandResult train_in(size_t bytes, const std::string& options) const {
    const Variable memory("MEGALITH_EMULATOR_MEMORY", std::to_string(kReserve + bytes)),
        counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
    return train("--device cuda --cuda-graph-impl none --train-iters 3 --eval-interval 2 --eval-iters 1 " +
                 options);
  }
  int64_t count(const char* kind) const { return Json::load(dir_ / "counts.json")[kind].as_int(); }
  const EmulatedDeviceForPrograms device_;
  const Variable algorithms_{"MEGALITH_EMULATOR_ALGORITHMS", "2"};
};

TEST_F(EmulatedCudaMemory, IsWhatTheEstimateSays) {
  const CommandResult result = train_in(needed(), "--save saved");
  ASSERT_EQ(result.code, 0) << result.all();
  constexpr int64_t kEmptyBlocks = 4096;  // of tensors that this run does not have
  EXPECT_GE(count("peak_memory"), static_cast<int64_t>(needed()));
  EXPECT_LE(count("peak_memory"), static_cast<int64_t>(needed()) + kEmptyBlocks);
  const test::Pattern as_estimated(
      "device memory: ([0-9.]+ [KM]iB) taken, \\1 estimated \\(100\\.[0-9]+ %\\)");
  EXPECT_TRUE(as_estimated.is_in(result.all())) << result.all();
}

TEST_F(EmulatedCudaMemory, IsWhatTheEstimateSaysWithABf16Moment) {
  const size_t bytes = needed(MomentType::kBf16);
  EXPECT_LT(bytes, needed());
  EXPECT_EQ(train_in(bytes, "--exp-avg-dtype bf16").code, 0);
  EXPECT_EQ(train_in(bytes, "").code, 64);
}

// The run is refused before it allocates, and runs with the options that the message names.
TEST_F(EmulatedCudaMemory, OfARunThatDoesNotFitIsMadeToFitByTheNamedChange) {
  const std::string words = "the least change that fits: ";
  std::vector<std::string> changes;
  for (const size_t missing : {size_t{1}, size_t{45'000}}) {
    const CommandResult refused = train_in(needed() - missing, "");
    ASSERT_EQ(refused.code, 64) << refused.all();
    EXPECT_EQ(count("allocations"), 0);
    const std::string all = refused.all();
    const size_t at = all.find(words);
    ASSERT_NE(at, std::string::npos) << all;
    const size_t begin = at + words.size();
    changes.push_back(all.substr(begin, all.find('\n', begin) - begin));
    const CommandResult changed = train_in(needed() - missing, changes.back());
    EXPECT_EQ(changed.code, 0) << changes.back() << changed.all();
  }
  EXPECT_EQ(changes[0], "--micro-batch-size 1 --global-batch-size 4");
  EXPECT_EQ(changes[1],
            "--recompute-granularity full --recompute-method block --recompute-num-layers 1 " + changes[0]);
}

/// When a device fails.
enum class FaultTime { kStart, kMiddle };

/// A device that fails with an error of the runtime, and how the run ends.
struct DeviceFault {
  int error;  // its number in CUDA's headers
  FaultTime time;
  int code;  // of the program
  const char* words;
};

class EmulatedCudaFaults : public EmulatedCudaPretrain {
 protected:
  /// Half of what a whole run asks of the device: of allocations for the error that memory is refused, or
  /// else of kernels, which are all counted where none is in a graph.
  int64_t middle(int error) {
    if (counts_.is_null()) {
      const Variable counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
      train_well(kOptions + " --cuda-graph-impl none", "whole.jsonl");
      counts_ = Json::load(dir_ / "counts.json");
    }
    constexpr int kMemoryAllocation = 2;
    return counts_[error == kMemoryAllocation ? "allocations" : "kernels"].as_int() / 2;
  }
  CommandResult train_with(const DeviceFault& fault) {
    const int64_t after = fault.time == FaultTime::kStart ? 0 : middle(fault.error);
    fs::remove_all(dir_ / "saved");
    const Variable controls("MEGALITH_EMULATOR_FAULT", concat(fault.error, ':', after));
    return train(kOptions);
  }
  Json counts_;
  const std::string kOptions =
      "--device cuda --train-iters 8 --eval-iters 0 --save-interval 2 --save saved --load saved";
  const EmulatedDeviceForPrograms device_;
};

// A failed device says what to do in one line, and what was saved before is whole.
TEST_F(EmulatedCudaFaults, EndARunWithALineThatSaysWhatToDo) {
  constexpr FaultTime kStart = FaultTime::kStart, kMiddle = FaultTime::kMiddle;
  const DeviceFault faults[] = {
      {35, kStart, 69, "the driver supports CUDA 13.0.*install a newer one"},
      {100, kStart, 69, "--device cpu"},
      {802, kStart, 69, "nvidia-fabricmanager"},
      {803, kStart, 69, "restart the machine"},
      {209, kStart, 69, "compute capability 8.0 or later"},
      {46, kStart, 69, "another process has the device"},
      {2, kMiddle, 69, "out of memory .error 2.*lower --micro-batch-size"},
      {214, kMiddle, 69, "uncorrectable ECC error.*the device is faulty.*resume"},
      {220, kMiddle, 69, "the device is faulty"},
      {999, kMiddle, 69, "Xid of dmesg"},
      {702, kMiddle, 69, "drives no display"},
      {12345, kMiddle, 69, "Xid of dmesg"},
      {700, kMiddle, 70, "an illegal memory access.*a bug in Megalith unless dmesg names Xid"},
      {719, kMiddle, 70, "unspecified launch failure.*report it"},
      {1, kMiddle, 70, "report it"}};
  for (const DeviceFault& fault : faults) {
    const CommandResult result = train_with(fault);
    EXPECT_EQ(result.code, fault.code) << fault.error << result.all();
    int errors = 0;
    for (const std::string& line : split(result.err, '\n')) {
      if (line.find("cuda: ") == std::string::npos) continue;
      ++errors;
      EXPECT_TRUE(test::Pattern(fault.words).is_in(line)) << fault.error << ' ' << line;
    }
    EXPECT_EQ(errors, 1) << fault.error << result.all();
  }
  EXPECT_TRUE(file_exists(dir_ / "saved/latest_checkpointed_iteration.txt"));
  const CommandResult resumed = train(kOptions);
  EXPECT_EQ(resumed.code, 0) << resumed.all();
  EXPECT_NE(resumed.all().find("successfully loaded checkpoint"), std::string::npos);
}

}  // namespace
}  // namespace megalith::test

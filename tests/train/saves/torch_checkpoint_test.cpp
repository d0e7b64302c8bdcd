// --ckpt-format torch: writes Megatron's files, from which a run resumes as from ours.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/checkpoint/torch/zip_archive.h"
#include "libcore/hash/crc32.h"
#include "libcore/io/files/file.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/saves/checkpoint_store.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/log_lines.h"
#include "tests/support/torch_bytes.h"
#include "tests/train/run/layouts.h"
#include "tests/train/run/same_tensors.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Layout;
using test::TempDir;
using test::tiny_config;
using test::tiny_data;

constexpr const char* kFirstRank = "mp_rank_00/model_optim_rng.pt";

/// Runs ten steps and saves in `format`; then resumes for ten more and saves in our format. All folders are
/// below `dir`.
std::string resume(const TempDir& dir, PretrainConfig config, CheckpointFormat format, const char* name) {
  config.checkpoint.save = dir / concat(name, "-first");
  config.checkpoint.format = format;
  config.train.exit_interval = 10;
  train(config, tiny_data(), nullptr);
  config.checkpoint.load = config.checkpoint.save;
  config.checkpoint.save = dir / name;
  config.checkpoint.format = checkpoint_format("megalith");
  config.train.exit_interval.reset();
  EXPECT_EQ(train(config, tiny_data(), nullptr).iteration, 20);
  return config.checkpoint.save;
}

void expect_same_state(const std::string& a, const std::string& b) {
  const CheckpointReader left(a), right(b);
  EXPECT_EQ(left.text(kStateFile), right.text(kStateFile));
  test::expect_same_tensors(left, right);
}

enum class Precision { kFp32, kBf16, kBf16Moment, kFp16 };

PretrainConfig in(Precision precision) {
  PretrainConfig config = tiny_config();
  config.train.bf16 = precision == Precision::kBf16 || precision == Precision::kBf16Moment;
  if (precision == Precision::kBf16Moment) config.train.first_moments = MomentType::kBf16;
  config.train.fp16 = precision == Precision::kFp16;
  config.train.initial_loss_scale = precision == Precision::kFp16 ? 0x1p22 : config.train.initial_loss_scale;
  config.train.threads = 1;
  return config;
}

std::string name_of(Precision precision) {
  constexpr const char* kNames[] = {"fp32", "bf16", "bf16_moment", "fp16"};
  return kNames[static_cast<size_t>(precision)];
}

class TorchCheckpoint : public testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(All, TorchCheckpoint,
                         testing::Values(Precision::kFp32, Precision::kBf16, Precision::kBf16Moment,
                                         Precision::kFp16),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(TorchCheckpoint, IsGoneOnFromBitForBit) {
  const TempDir dir;
  const PretrainConfig config = in(GetParam());
  const std::string ours = resume(dir, config, checkpoint_format("megalith"), "ours");
  const std::string torch = resume(dir, config, checkpoint_format("torch"), "torch");
  EXPECT_TRUE(fs::exists(dir.path() / "torch-first/iter_0000010" / kFirstRank));
  EXPECT_EQ(read_file(dir / "torch-first/latest_checkpointed_iteration.txt"), "10");
  // The checkpoint in our format, which was converted to Megatron's, has been removed.
  EXPECT_FALSE(fs::exists(dir.path() / "torch-first/.torch"));
  expect_same_state(ours, torch);
}

// With --weight-decay-all Adam has one group of parameters.
TEST_P(TorchCheckpoint, IsGoneOnFromWhereAllParametersDecay) {
  const TempDir dir;
  PretrainConfig config = in(GetParam());
  config.train.decay_all = true;
  expect_same_state(resume(dir, config, checkpoint_format("megalith"), "ours"),
                    resume(dir, config, checkpoint_format("torch"), "torch"));
}

// The first save was killed after it renamed its folder and before it wrote the tracker: the same command
// resumes from that folder.
TEST(TorchCheckpoint, IsGoneOnFromWhereNoTrackerNamesTheFirst) {
  const TempDir dir;
  PretrainConfig config = in(Precision::kFp32);
  config.checkpoint.format = checkpoint_format("torch");
  const auto run = [&](const char* name, std::optional<int64_t> exit_at) {
    config.checkpoint.load = config.checkpoint.save = dir / name;
    config.train.exit_interval = exit_at;
    config.train.log_json = dir / concat(name, ".jsonl");
    return train(config, tiny_data(), nullptr).iteration;
  };
  ASSERT_EQ(run("whole", {}), 20);
  ASSERT_EQ(run("killed", 10), 10);
  const std::string tracker = dir / "killed/latest_checkpointed_iteration.txt";
  fs::remove(tracker);
  ASSERT_EQ(run("killed", {}), 20);
  EXPECT_EQ(read_file(tracker), "20");
  const auto losses = test::train_losses(dir / "whole.jsonl");
  ASSERT_EQ(losses.size(), 20U);
  EXPECT_EQ(test::train_losses(dir / "killed.jsonl"), losses);

  // If that folder holds the run's last checkpoint, nothing is left to train or save, but the tracker is
  // still written.
  fs::remove_all(dir.path() / "killed/iter_0000010");
  fs::remove(tracker);
  ASSERT_EQ(run("killed", {}), 20);
  EXPECT_EQ(read_file(tracker), "20");

  // With two folders and no tracker it is unknown which one is newest and complete.
  fs::remove(tracker);
  fs::copy(dir.path() / "killed/iter_0000020", dir.path() / "killed/iter_0000015",
           fs::copy_options::recursive);
  EXPECT_THROW(run("killed", {}), Error);
}

/// The value of a key in a dict.
PickleRef at(const TorchFile& file, PickleRef ref, const char* key) {
  const auto found = file.tree.find_ref(ref, key);
  if (!found) throw std::runtime_error(concat("no ", key));
  return *found;
}

// The checkpoint must hold what Megatron's loader reads (training/checkpointing.py: load_checkpoint). Its
// optimizer must number the parameters as Megatron does (core/optimizer: _get_param_groups,
// Float16OptimizerWithFloat16Params.state_dict): in the order of named_parameters(), beginning with the
// embedding, those with weight decay first.
TEST(TorchCheckpoint, HoldsWhatMegatronsLoaderReads) {
  const TempDir dir;
  PretrainConfig config = in(Precision::kFp16);
  config.train.decay_iters = 10;
  config.checkpoint.save = dir / "s";
  config.checkpoint.format = checkpoint_format("torch");
  train(config, tiny_data(), nullptr);
  const TorchFile file = open_torch(dir / concat("s/iter_0000020/", kFirstRank));
  const PickleRef root = file.tree.root();
  EXPECT_EQ(file.tree[at(file, root, "iteration")].whole(), 20);
  EXPECT_EQ(file.tree[at(file, root, "checkpoint_version")].real(), 3.0);
  const PickleRef args = at(file, root, "args");
  EXPECT_EQ(file.tree.class_name(args), "argparse.Namespace");
  EXPECT_EQ(file.tree[at(file, args, "consumed_train_samples")].whole(), 80);
  EXPECT_EQ(file.tree[at(file, args, "train_iters")].whole(), 20);
  EXPECT_EQ(file.tree[at(file, args, "vocab_size")].whole(), test::kTinyVocab);
  EXPECT_EQ(file.tree[at(file, args, "padded_vocab_size")].whole(), 128);
  const PickleRef scheduler = at(file, root, "opt_param_scheduler");
  EXPECT_EQ(file.tree[at(file, scheduler, "num_steps")].whole() % 4, 0);
  // load_state_dict (core/optimizer_param_scheduler.py) compares this value with train_iters * batch
  // (training.py).
  EXPECT_EQ(file.tree[at(file, scheduler, "wd_incr_steps")].whole(), 80);

  const PickleRef model = at(file, root, "model"), optimizer = at(file, root, "optimizer");
  EXPECT_EQ(file.tensor(at(file, model, "embedding.word_embeddings.weight")).extents,
            (std::vector<int64_t>{128, 16}));
  EXPECT_EQ(
      file.tensor(at(file, model, "decoder.layers.1.self_attention.linear_qkv.layer_norm_weight")).extents,
      (std::vector<int64_t>{16}));
  const PickleRef adam = at(file, optimizer, "optimizer");
  const auto& groups = file.tree[at(file, adam, "param_groups")].items();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(file.tree[at(file, groups[0], "wd_mult")].real(), 1.0);
  EXPECT_EQ(file.tree[at(file, groups[1], "wd_mult")].real(), 0.0);
  EXPECT_EQ(file.tree[at(file, groups[0], "params")].items().size(),
            2U + 2 * 4);  // two embeddings, and 4 matrices per layer
  EXPECT_EQ(file.tree[at(file, groups[1], "params")].items().size(),
            2U * 8 + 2);  // norms and biases of two layers, and the last norm
  const auto& masters = file.tree[at(file, optimizer, "fp32_from_fp16_params")].items();
  ASSERT_EQ(masters.size(), 2U);
  // The order was found by hand: words, positions, then of layer 0 proj before qkv.
  const auto& decayed = file.tree[masters[0]].items();
  const auto extents = [&](size_t i) { return file.tensor(decayed[i]).extents; };
  EXPECT_EQ(extents(0), (std::vector<int64_t>{128, 16}));
  EXPECT_EQ(extents(1), (std::vector<int64_t>{9, 16}));
  EXPECT_EQ(extents(2), (std::vector<int64_t>{16, 16}));
  EXPECT_EQ(extents(3), (std::vector<int64_t>{48, 16}));
  EXPECT_EQ(extents(4), (std::vector<int64_t>{64, 16}));
  EXPECT_EQ(extents(5), (std::vector<int64_t>{16, 64}));
  const TorchTensor& scale = file.tensor(at(file, at(file, optimizer, "grad_scaler"), "scale"));
  float value = 0;
  copy_tensor(scale, {0}, View{&value, DType::kF32, {1}}, {0}, {1});
  EXPECT_EQ(std::exp2(std::round(std::log2(value))), value);  // the initial scale is a power of two
  EXPECT_EQ(CrcCheck::kYes, file.bytes->check);
  TorchTensorFile(file).verify();
}

// Several ranks save one file per rank of the model, each with the optimizer state from all data-parallel
// ranks; any layout can resume from these files.
/// Changes the pickle of a rank's file, but not its length, and then its CRC in the archive.
void change_pickle(const std::string& path, const std::function<void(std::string&)>& change) {
  std::string bytes = read_file(path);
  const ZipArchive archive(bytes, path);
  const auto found = std::find_if(archive.members().begin(), archive.members().end(),
                                  [](const auto& member) { return member.name.ends_with("data.pkl"); });
  ASSERT_NE(found, archive.members().end());
  const ZipArchive::Member member = *found;
  std::string pickle(archive.bytes_of(member));
  const size_t size = pickle.size();
  change(pickle);
  ASSERT_EQ(pickle.size(), size);
  const std::string old = test::u32(member.crc), now = test::u32(crc32(0, pickle.data(), size));
  bytes.replace(member.begin, size, pickle);
  for (size_t at = bytes.find(old); at != std::string::npos; at = bytes.find(old, at + 1))
    bytes.replace(at, old.size(), now);
  write_file(path, bytes);
}

TEST(TorchCheckpoint, RefusesProgressThatNoRunReached) {
  const TempDir dir;
  PretrainConfig config = in(Precision::kFp32);
  config.checkpoint.save = dir / "sound";
  config.checkpoint.format = checkpoint_format("torch");
  config.train.exit_interval = 2;
  train(config, tiny_data(), nullptr);
  const auto refused = [&](const std::function<void(std::string&)>& change) -> std::string {
    fs::remove_all(dir.path() / "changed");
    fs::copy(dir.path() / "sound", dir.path() / "changed", fs::copy_options::recursive);
    change_pickle(dir / concat("changed/iter_0000002/", kFirstRank), change);
    CheckpointConfig from;
    from.load = dir / "changed";
    try {
      find_start(from, config.model);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refused([](std::string&) {}), "taken");
  for (const char* key : {"iteration", "consumed_train_samples", "consumed_valid_samples",
                          "skipped_train_samples", "skipped_iterations", "global_batch_size", "num_steps"})
    for (const std::string& bad : {std::string("J\xff\xff\xff\xff"), std::string("(NNNt")}) {
      const std::string found = refused([&](std::string& pickle) {
        const size_t at = test::last_value(pickle, key);
        ASSERT_NE(at, std::string::npos) << key;
        ASSERT_EQ(pickle[at], 'J') << key;
        pickle.replace(at, bad.size(), bad);
      });
      EXPECT_NE(found.find(concat('"', key, '"')), std::string::npos) << key << ": " << found;
    }
  const std::string twice = refused([](std::string& pickle) {
    const size_t at = test::last_value(pickle, "params") + 2;  // after the list's two opcodes
    ASSERT_EQ(pickle[at], 'J');
    pickle.replace(at + 5, 5, pickle.substr(at, 5));
  });
  EXPECT_NE(twice.find("has two parameters with the number "), std::string::npos) << twice;
}

TEST(TorchCheckpoint, OfManyRanksIsGoneOnFromByAnyLayout) {
  const TempDir dir;
  PretrainConfig one = tiny_config();
  one.model.layers = 4;
  one.model.heads = 4;
  one.model.kv_channels = 0;  // 0: finish() derives it
  one.model.seq_length = one.model.max_positions = 12;
  one.train.micro_batch = 1;
  one.train.global_batch = 8;
  one.train.threads = 1;
  one.train.lr = 2e-3;
  one.finish();
  const auto losses = [&](PretrainConfig config) {
    config.train.log_json = dir / concat("log", fs::exists(dir.path() / "log1") ? "2" : "1");
    fs::remove(config.train.log_json);
    train(config, tiny_data(), nullptr);
    return test::train_losses(config.train.log_json);
  };
  const std::vector<double> whole = losses(one);
  const Layout spread{.name = "tp2_pp2_dp2_zero1",
                      .tensor = 2,
                      .pipeline = 2,
                      .data = 2,
                      .sequence = true,
                      .sharding = Sharding::kOptimizer};
  for (const bool back : {false, true}) {
    const std::string folder = dir / (back ? "back" : "forth");
    PretrainConfig first = back ? one : test::shared(one, spread),
                   second = back ? test::shared(one, spread) : one;
    first.checkpoint.save = second.checkpoint.load = folder;
    first.checkpoint.format = checkpoint_format("torch");
    first.train.exit_interval = 10;
    losses(first);
    if (!back) {
      for (const char* rank : {"00_000", "01_000", "00_001", "01_001"})
        EXPECT_TRUE(
            fs::exists(fs::path(folder) / concat("iter_0000010/mp_rank_", rank, "/model_optim_rng.pt")));
    }
    const std::vector<double> rest = losses(second);
    ASSERT_EQ(rest.size(), 10U);
    for (size_t i = 0; i < rest.size(); ++i)
      EXPECT_NEAR(rest[i] / whole[10 + i], 1, 1e-5) << i;  // kLayoutTolerance of layouts_test.cpp
  }
}

TEST(TorchCheckpoint, WithoutTheOptimizerSaysSo) {
  const TempDir dir;
  PretrainConfig config = tiny_config();
  config.checkpoint.save = config.checkpoint.load = dir / "s";
  config.checkpoint.format = checkpoint_format("torch");
  config.checkpoint.save_optim = false;
  config.train.exit_interval = 10;
  train(config, tiny_data(), nullptr);
  test::LogLines log;
  EXPECT_EQ(train(config, tiny_data(), nullptr).iteration, 20);
  EXPECT_NE(
      join(log.lines, "\n").find("no optimizer state (it was saved without): continuing with fresh moments"),
      std::string::npos);
}

TEST(TorchCheckpoint, IsRefusedForStagesOfDifferentDepthAndWhatCannotBeReadBack) {
  PretrainConfig config = tiny_config();
  config.parallel.pipeline = 2;
  config.parallel.pipeline_layers = {"1", "3"};
  const CheckpointStore& torch = store_of(checkpoint_format("torch"));
  EXPECT_NE(torch.refusal(config.model, config.parallel).find("--pipeline-layers"), std::string::npos);
  config.parallel.pipeline_layers.clear();
  config.model.kv_channels = 24;
  EXPECT_NE(torch.refusal(config.model, config.parallel).find("--kv-channels 24"), std::string::npos);
  config.model.kv_channels = 8;
  EXPECT_EQ(torch.refusal(config.model, config.parallel), "");
}

// Otherwise a run would end at its first save. Hugging Face families express all of these models.
TEST(TorchCheckpoint, IsRefusedBeforeTheFirstStepForWhatGptModelLacks) {
  struct Part {
    const char* message;
    void (*change)(ModelConfig&);
  };
  const PretrainConfig config = tiny_config();
  const CheckpointStore& torch = store_of(checkpoint_format("torch"));
  const auto refusal = [&](const Part& part) {
    ModelConfig model = config.model;
    model.position = PositionEmbedding::kRope;
    part.change(model);
    return torch.refusal(model, config.parallel);
  };
  EXPECT_EQ(refusal({"", [](ModelConfig&) {}}), "");
  for (const Part& part : {
           Part{"no parallel branches", [](ModelConfig& model) { model.parallel_residual = true; }},
           Part{"no rotary scaling of the type yarn",
                [](ModelConfig& model) { model.rope_type = RopeType::kYarn; }},
           Part{"low_freq_factor 1",
                [](ModelConfig& model) { model.rope_scaling = true, model.rope_high_freq = 7; }},
           Part{"--no-rope-freq must divide the number of layers",
                [](ModelConfig& model) {
                  model.norm = Normalization::kRmsNorm;
                  model.swiglu = true;
                  model.no_rope_freq = 3;
                }},
       })
    EXPECT_NE(refusal(part).find(part.message), std::string::npos) << part.message << ": " << refusal(part);
}

}  // namespace
}  // namespace megalith

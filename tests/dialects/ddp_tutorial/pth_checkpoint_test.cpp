// --ckpt-format pth: torch reads the pair, and a run resumes from it as from our own format.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/dialects/ddp_tutorial/pth_file.h"
#include "libcore/dialects/ddp_tutorial/tutorial_names.h"
#include "libcore/io/files/file.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/saves/start_point.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/log_lines.h"
#include "tests/train/run/tiny_run.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PthCheckpoint : public testing::Test {
 protected:
  PretrainConfig config() const {
    PretrainConfig c = tiny_config();
    c.checkpoint.save = dir_ / "pth";
    c.checkpoint.format = checkpoint_format("pth");
    return c;
  }
  /// The values of all tensors of a checkpoint in our format, one after another.
  static std::vector<float> values(const std::string& root) {
    const CheckpointReader reader(root);
    std::vector<float> all;
    for (const StoredTensor& tensor : reader.tensors()) {
      std::vector<float> one(static_cast<size_t>(tensor.shape().elements()));
      reader.read(Box::whole(tensor.name, tensor.shape()), View{one.data(), DType::kF32, tensor.shape()});
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  /// On `ranks` ranks, runs ten steps that are saved as .pth files, then resumes for ten more that are saved
  /// in our format.
  void expect_resumed_bit_for_bit(PretrainConfig plain, int ranks) {
    plain.checkpoint.save = dir_ / concat("whole", ranks, plain.train.bf16);
    train(plain, tiny_data(), nullptr);
    PretrainConfig first = plain;
    first.checkpoint.save = dir_ / concat("pth", ranks, plain.train.bf16);
    first.checkpoint.format = checkpoint_format("pth");
    first.train.exit_interval = 10;
    train(first, tiny_data(), nullptr);
    EXPECT_TRUE(file_exists(first.checkpoint.save + "/model_000000.pth"));
    EXPECT_FALSE(fs::exists(first.checkpoint.save + "/.pth"));
    PretrainConfig rest = plain;
    rest.checkpoint.load = first.checkpoint.save;
    rest.checkpoint.save = dir_ / concat("rest", ranks, plain.train.bf16);
    EXPECT_EQ(train(rest, tiny_data(), nullptr).iteration, 20);
    EXPECT_EQ(values(rest.checkpoint.save), values(plain.checkpoint.save));
  }
  /// Why a run with --checkpoint `number` is refused; empty: it is not.
  std::string refusal(int64_t number) const {
    try {
      pair(number);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  /// The start point of a run with --checkpoint `number`.
  StartPoint pair(int64_t number) const {
    CheckpointConfig from;
    from.save = dir_ / "pth";
    from.number = number;
    return find_start(from, tiny_config().model).value();
  }

  bool warns_of_later_pairs() const {
    return std::any_of(log_.lines.begin(), log_.lines.end(), [](const std::string& line) {
      return line.find("has later pairs, up to number 2;") != std::string::npos;
    });
  }

  TempDir dir_;
  LogLines log_;
};

TEST_F(PthCheckpoint, ResumesBitForBit) {
  expect_resumed_bit_for_bit(tiny_config(), 1);
  PretrainConfig half = tiny_config();
  half.train.bf16 = true;
  expect_resumed_bit_for_bit(half, 1);
}

TEST_F(PthCheckpoint, IsOneFileWhateverTheLayout) {
  PretrainConfig four = tiny_config();
  four.parallel = {};
  four.parallel.tensor = four.parallel.pipeline = 2;
  four.parallel.nproc = 4;
  four.finish();
  expect_resumed_bit_for_bit(four, 4);
}

// A run resumes with half the batch, as with half as many ranks. Its schedule resumes at the same step. The
// expected rates follow the tutorial's formulas.
TEST_F(PthCheckpoint, KeepsTheScheduleInStepsWithAnotherBatch) {
  PretrainConfig c = config();
  c.train.global_batch = 8;
  c.train.warmup_iters = 6;
  c.train.exit_interval = 4;
  train(c, tiny_data(), nullptr);
  c.train.global_batch = 4;
  c.checkpoint.number = 0;
  c.train.exit_interval = 8;
  c.train.log_json = dir_ / "log";
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 8);
  const auto steps = log_lines(dir_ / "log", "train");
  ASSERT_EQ(steps.size(), 4U);
  for (int64_t i = 0; i < 4; ++i) {  // each line shows the next step's rate
    const auto done = static_cast<double>(i + 5);
    const double share = 0.5 * (1 + std::cos(std::numbers::pi * (done - 6) / (20 - 6)));
    const double want = done <= 6 ? 1e-2 * done / 6 : 1e-3 + (1e-2 - 1e-3) * share;
    EXPECT_NEAR(steps[static_cast<size_t>(i)]["lr"].as_double(), want, 1e-12) << i;
  }
  c.train.warmup_iters = 5;
  try {
    train(c, tiny_data(), nullptr);
    ADD_FAILURE() << "another warm-up was accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with(dir_ / "pth/model_000000.pth")) << text;
    EXPECT_NE(text.find("--lr-warmup-iters, in samples: checkpoint 24, command line 20"), std::string::npos);
  }
}

// A run resumes with another batch: an epoch of 49 windows has 6 steps of 8 samples or 4 of 10. The decay
// must span the same epochs.
TEST_F(PthCheckpoint, DecaysOverTheSameEpochsWithAnotherBatch) {
  PretrainConfig c = config();
  c.train.global_batch = 8;
  c.train.iters = c.train.decay_iters = 2 * 6;
  c.train.exit_interval = 4;
  DataSets data = tiny_data();
  data.train.epoch = 48;
  train(c, data, nullptr);
  StartPoint start = pair(0);
  EXPECT_EQ(start.schedule->decay_end, 96);
  c.train.global_batch = 10;  // an epoch has 4 steps
  c.train.iters = c.train.decay_iters = 2 * 4;
  count_in_steps(start, c.train, 40);
  EXPECT_EQ(start.schedule->decay_end, 80);
  EXPECT_EQ(start.state->schedule_samples, 4 * 10);
  EXPECT_EQ(start.state->consumed_train, 4 * 10);  // so the run continues after 4 steps of its own order
  StartPoint longer = pair(0);
  c.train.iters = c.train.decay_iters = 4 * 4;  // another number of epochs gives another decay
  count_in_steps(longer, c.train, 40);
  EXPECT_EQ(longer.schedule->decay_end, 12 * 10);
}

TEST_F(PthCheckpoint, IsNumberedBySavesFromZero) {
  PretrainConfig c = config();
  c.checkpoint.save_interval = 8;
  train(c, tiny_data(), nullptr);
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(dir_ / "pth")) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".pth")) all.push_back(name);
    }
    std::sort(all.begin(), all.end());
    return join(all, " ");
  };
  EXPECT_EQ(names(),
            "model_000000.pth model_000001.pth model_000002.pth "
            "optimizer_000000.pth optimizer_000001.pth optimizer_000002.pth");
  EXPECT_EQ(pair(1).state->iteration, 16);
  c.checkpoint.number = 1;  // what follows takes the place of number 2
  c.train.iters = 17;
  c.train.decay_iters = 20;
  log_.lines.clear();
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 17);
  EXPECT_TRUE(warns_of_later_pairs());
  EXPECT_EQ(pair(2).state->iteration, 17);
  EXPECT_EQ(names().find("000003"), std::string::npos);
  c.checkpoint.number = 2;
  c.train.iters = 18;
  log_.lines.clear();
  train(c, tiny_data(), nullptr);
  EXPECT_FALSE(warns_of_later_pairs());
  CheckpointConfig newest;
  newest.load = dir_ / "pth";
  EXPECT_EQ(find_start(newest, c.model).value().path, dir_ / "pth/model_000003.pth");
}

/// A GPTModel that is untied, so that its optimizer has each of its parameters.
PretrainConfig untied(PretrainConfig c) {
  c.model.untied_head = true;
  c.train.iters = 2;
  return c;
}

// The file must have the form of torch.optim.AdamW(...).state_dict(), with a parameter for each of
// GPTModel's.
TEST_F(PthCheckpoint, HoldsAdamWsState) {
  train(untied(config()), tiny_data(), nullptr);
  const TorchFile file = open_torch(dir_ / "pth/optimizer_000000.pth");
  const PickleRef root = file.tree.root();
  ASSERT_TRUE(file.tree.find_ref(root, "state") && file.tree.find_ref(root, "param_groups"));
  const TorchFile model = open_torch(dir_ / "pth/model_000000.pth");
  std::set<std::string> names;
  for (const TorchLeaf& leaf : leaves_of(model.tree, model.tree.root(), "model")) names.insert(leaf.name);
  for (const char* const name :
       {"tok_emb.weight", "pos_emb.weight", "trf_blocks.1.att.W_query.weight",
        "trf_blocks.1.att.W_value.bias", "trf_blocks.0.att.mask", "trf_blocks.1.ff.layers.2.bias",
        "trf_blocks.0.norm2.shift", "final_norm.scale", "out_head.weight"})
    EXPECT_TRUE(names.contains(name)) << name;
  constexpr size_t kMasks = 2;
  EXPECT_EQ(file.tensors.size(), 2 * (names.size() - kMasks));  // exp_avg and exp_avg_sq of each parameter
}

// GPTModel registers torch.triu(torch.ones(positions, positions), diagonal=1). 40 rows are not written at
// once.
TEST_F(PthCheckpoint, HoldsTheMaskOfEachLayer) {
  PretrainConfig c = config();
  c.model.max_positions = 40;
  c.train.iters = 2;
  train(c, tiny_data(), nullptr);
  const TorchFile model = open_torch(dir_ / "pth/model_000000.pth");
  const auto ref = model.tree.find_ref(model.tree.root(), "trf_blocks.1.att.mask");
  ASSERT_TRUE(ref);
  std::vector<float> mask(size_t{40} * 40);
  copy_tensor(model.tensor(*ref), {0, 0}, View{mask.data(), DType::kF32, {40, 40}}, {0, 0}, {40, 40});
  for (size_t row = 0; row < 40; ++row)
    for (size_t column = 0; column < 40; ++column)
      EXPECT_EQ(mask[row * 40 + column], column > row ? 1 : 0) << row << ' ' << column;
}

// A model that GPTModel has no place for is saved under our names.
TEST_F(PthCheckpoint, HasOurNamesForOtherModels) {
  PretrainConfig c = config();
  c.model.norm = Normalization::kRmsNorm;
  c.train.exit_interval = 2;
  train(c, tiny_data(), nullptr);
  const TorchFile model = open_torch(dir_ / "pth/model_000000.pth");
  for (const TorchLeaf& leaf : leaves_of(model.tree, model.tree.root(), "model"))
    EXPECT_TRUE(leaf.name.starts_with("decoder.") || leaf.name.starts_with("embedding.")) << leaf.name;
  c.checkpoint.number = 0;
  c.train.exit_interval = 4;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 4);
  c.checkpoint.number.reset();
  c.checkpoint.save = dir_ / "gpt";
  c.model.norm = Normalization::kLayerNorm;
  c.checkpoint.overwrite = true;
  train(c, tiny_data(), nullptr);
  c.checkpoint.number = 0;
  c.model.norm = Normalization::kRmsNorm;
  EXPECT_THROW(train(c, tiny_data(), nullptr), Error);
}

// A tied model's head there is the embedding.
TEST_F(PthCheckpoint, TiesTheHeadOfATiedModel) {
  PretrainConfig c = config();
  c.train.exit_interval = 2;
  train(c, tiny_data(), nullptr);
  const TorchFile model = open_torch(dir_ / "pth/model_000000.pth");
  std::map<std::string, uint64_t> first;
  for (const TorchLeaf& leaf : leaves_of(model.tree, model.tree.root(), "model"))
    first[leaf.name] = model.tensor(leaf.value).first;
  EXPECT_EQ(first.at("out_head.weight"), first.at("tok_emb.weight"));
  c.model.untied_head = true;
  c.checkpoint.number = 0;
  EXPECT_THROW(train(c, tiny_data(), nullptr), Error);  // its optimizer has no moments of a head
}

// Both of torch's classes load our pair, AdamW with one group.
TEST_F(PthCheckpoint, IsReadByTorch) {
  if (!python_has("torch tokenizers numpy"))
    GTEST_SKIP() << "Python has no torch, tokenizers and numpy (tools/setup --peers)";
  PretrainConfig c = untied(config());
  c.model.qkv_bias = false;
  c.train.decay_all = true;
  train(c, tiny_data(), nullptr);
  write_file(dir_ / "check.py", R"(
import torch
from make_tutorial_goldens import GPTModel
model = GPTModel(37, 2, 16, 2, 9)
model.load_state_dict(torch.load("pth/model_000000.pth", weights_only=True))
optimizer = torch.optim.AdamW(model.parameters())
state = torch.load("pth/optimizer_000000.pth", weights_only=True)
state.pop("megalith")
optimizer.load_state_dict(state)
for p in model.parameters():
    assert optimizer.state[p]["exp_avg"].shape == p.shape and optimizer.state[p]["step"] == 2
    p.grad = torch.ones_like(p)
optimizer.step()
print(len(optimizer.param_groups), optimizer.param_groups[0]["weight_decay"])
)");
  const CommandResult result =
      run_command("cd " + dir_.path().string() + " && PYTHONPATH=" + MEGALITH_SOURCE_DIR + "/tools/golden " +
                  python() + " check.py");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "1 0.01\n");
}

TEST_F(PthCheckpoint, NamesWhatIsNotThere) {
  EXPECT_NE(refusal(3).find("holds no model_NNNNNN.pth"), std::string::npos) << refusal(3);
  PretrainConfig c = config();
  c.train.iters = 2;
  train(c, tiny_data(), nullptr);
  EXPECT_NE(refusal(3).find("model_000003.pth: is not there; there are 0"), std::string::npos) << refusal(3);
  const std::string path = dir_ / "pth/optimizer_000000.pth";
  const std::string bytes = read_file(path);
  write_file(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_NE(refusal(0).find("optimizer_000000.pth"), std::string::npos) << refusal(0);
  write_file(path, bytes);
  fs::rename(dir_ / "pth/model_000000.pth", dir_ / "pth/model_000007.pth");
  fs::rename(path, dir_ / "pth/optimizer_000007.pth");
  EXPECT_NE(refusal(7).find("optimizer_000007.pth: holds the state after step 1, which is number 0, but its "
                            "name and the model next to it are number 7"),
            std::string::npos)
      << refusal(7);
  fs::remove(dir_ / "pth/optimizer_000007.pth");
  EXPECT_FALSE(pair(7).state);  // the start point has only weights
}

// amsgrad of torch.optim.AdamW keeps "max_exp_avg_sq". The file has what the reader looks at.
TEST_F(PthCheckpoint, RefusesWhatAnotherOptimizerKeeps) {
  PretrainConfig c = config();
  c.train.iters = 2;
  train(c, tiny_data(), nullptr);
  PthFile file(dir_ / "pth/optimizer_000000.pth");
  PickleWriter& pickle = file.pickle();
  pickle.begin_dict();
  pickle.text("state");
  pickle.begin_dict();
  pickle.integer(0);
  pickle.begin_dict();
  pickle.text("step");
  pickle.real(2);
  pickle.text("max_exp_avg_sq");
  file.tensor({.name = "max_exp_avg_sq", .dtype = DType::kF32, .shape = {1}},
              [](View out, int64_t) { *static_cast<float*>(out.data) = 0; });
  pickle.end_dict();
  pickle.end_dict();
  pickle.text("param_groups");
  pickle.begin_list();
  pickle.begin_dict();
  pickle.text("params");
  pickle.begin_list();
  for (size_t id = 0; id < tutorial_parameters(c.model).size(); ++id)
    pickle.integer(static_cast<int64_t>(id));
  pickle.end_list();
  pickle.end_dict();
  pickle.end_list();
  pickle.end_dict();
  file.write();
  EXPECT_NE(refusal(0).find("optimizer_000000.pth: keeps \"max_exp_avg_sq\" of a parameter, wanted step"),
            std::string::npos)
      << refusal(0);
}

TEST_F(PthCheckpoint, DoesNotOverwritePairsFromWeightsAlone) {
  PretrainConfig c = config();
  c.train.exit_interval = 2;
  train(c, tiny_data(), nullptr);
  fs::remove(dir_ / "pth/optimizer_000000.pth");
  const std::string before = read_file(dir_ / "pth/model_000000.pth");
  c.checkpoint.number = 0;
  try {
    train(c, tiny_data(), nullptr);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
    EXPECT_TRUE(text.starts_with(dir_ / "pth/optimizer_000000.pth: is not there")) << text;
  }
  EXPECT_EQ(read_file(dir_ / "pth/model_000000.pth"), before);
  c.checkpoint.number.reset();  // saving to another folder is allowed
  c.checkpoint.load = dir_ / "pth";
  c.checkpoint.save = dir_ / "other";
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 2);
  EXPECT_TRUE(file_exists(dir_ / "other/model_000000.pth"));
}

}  // namespace
}  // namespace megalith::test

#include "libcore/train/saves/checkpoint_store.h"

#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/options/fields.h"
#include "libcore/train/run/loop.h"
#include "tests/support/files.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

// Every format has a store or a refusal: options with a format that cannot be written are refused, with
// advice what to give instead.
TEST(CheckpointStores, AreThereForEveryFormatThatIsWritten) {
  for (const auto& [name, format] : enum_names(CheckpointFormat{})) {
    if (!traits_of(format).refusal) {
      EXPECT_TRUE(checkpoint_stores().contains(format)) << name;
      continue;
    }
    try {
      store_of(format);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(std::string(error.what()),
                "--ckpt-format " + std::string(name) + " is not written; give another one");
    }
  }
}

// A folder may hold checkpoints in several formats. Ours is found first, but --checkpoint NUMBER finds a
// pair.
TEST(CheckpointStores, AreAskedInTheirOrder) {
  const test::TempDir dir;
  PretrainConfig config = test::tiny_config();
  config.train.eval_iters = 0;
  const auto add = [&](const char* format, int64_t steps) {
    config.checkpoint.save = dir / format;
    config.checkpoint.format = checkpoint_format(format);
    config.train.exit_interval = steps;
    train(config, test::tiny_data(), nullptr);
    std::filesystem::copy(
        dir / format, dir / "s",
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  };
  add("pth", 2);
  CheckpointConfig from;
  from.load = dir / "s";
  const auto path = [&] { return find_checkpoint(from)->start(from, config.model, Trained::kModel).path; };
  EXPECT_EQ(path(), dir / "s/model_000000.pth");
  add("torch", 2);
  EXPECT_EQ(path(), dir / "s/iter_0000002");
  EXPECT_EQ(find_checkpoint(from)->start(from, config.model, Trained::kModel).args.find("lr"), nullptr);
  add("megalith", 3);
  EXPECT_EQ(path(), dir / "s/iter_0000003");
  from = {};
  from.save = dir / "s";
  from.number = 0;
  EXPECT_EQ(path(), dir / "s/model_000000.pth");
  from.save = dir / "none";
  from.number.reset();
  EXPECT_EQ(find_checkpoint(from), nullptr);
}

}  // namespace
}  // namespace megalith

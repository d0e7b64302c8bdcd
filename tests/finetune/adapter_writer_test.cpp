#include "libcore/finetune/adapter_writer.h"

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

class AdapterWriterTest : public testing::Test {
 protected:
  void write(int number) const {
    AdapterWriter writer(folder_, {{"matrix", DType::kF32, Shape{64}}});
    const std::vector<float> values(64, static_cast<float>(number));
    writer.weights().write("matrix", values.data(), values.size() * sizeof(float));
    writer.finish(Json::Object{{"lora_alpha", number}});
  }

  /// The number of the adapter whose settings are stored; nothing if none are. Also checks that the stored
  /// weights are those of this adapter.
  std::optional<int64_t> found() const {
    if (!file_exists(folder_ + "/adapter_config.json")) return {};
    const int64_t number =
        Json::parse(read_file(folder_ + "/adapter_config.json"), "settings")["lora_alpha"].as_int();
    std::vector<float> values(64);
    SafetensorsFile(folder_ + "/adapter_model.safetensors")
        .read(Box::whole("matrix", Shape{64}), {values.data(), DType::kF32, Shape{64}});
    EXPECT_EQ(values, std::vector<float>(64, static_cast<float>(number)));
    return number;
  }

  TempDir dir_;
  const std::string folder_ = dir_ / "adapter";
};

TEST_F(AdapterWriterTest, NeverLeavesOnesSettingsWithAnothersWeights) {
  write(1);
  const FaultRun whole = run_with_fault({}, [&] { write(2); });
  ASSERT_EQ(whole.exit_code, 0);
  ASSERT_EQ(found(), 2);
  for (const Fault::Mode mode : {Fault::kKill, Fault::kFail})
    for (int call = 1; call <= whole.calls; ++call) {
      SCOPED_TRACE(call);
      write(1);
      const FaultRun run = run_with_fault({.mode = mode, .at = call, .error = EIO}, [&] { write(2); });
      EXPECT_TRUE(run.killed || run.exit_code == 74 || run.exit_code == 0) << run.exit_code;
      const std::optional<int64_t> left = found();
      if (run.exit_code == 0 && !run.killed) {
        EXPECT_EQ(left, 2);
      }
    }
}

TEST_F(AdapterWriterTest, KeepsTheOldOneWhenTheDiskIsFull) {
  write(1);
  const FaultRun run = run_with_fault(
      {.mode = Fault::kFail, .error = ENOSPC, .every = {"write", "pwrite", "writev", "pwritev"}},
      [&] { write(2); });
  EXPECT_TRUE(run.fired);
  EXPECT_EQ(run.exit_code, 74);
  EXPECT_EQ(found(), 1);
}

}  // namespace
}  // namespace megalith::test

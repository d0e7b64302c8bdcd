#include <gtest/gtest.h>

#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

const char* const k22b =
    " --world-size 64 --local-world-size 8 --max-global-batch-size 16 --num-layers 48 --num-attention-heads "
    "64 "
    "--hidden-size 6144 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257";

TEST(Autoplan, RanksPlansForTheDocumentedCommand) {
  const CommandResult result =
      run_command(app("autoplan") + " --task-type llmacc.megatron.GPT" + k22b + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_EQ(answer["parameters"].as_double(),
            22068480000.0);  // 48 * (12 h^2 + 13 h) + (50257 + 2048) h + 2 h
  const Json::Array& plans = answer["plans"].as_array();
  ASSERT_EQ(plans.size(), 10u);
  for (const Json& plan : plans) {
    const int64_t ranks = plan["tensor"].as_int() * plan["pipeline"].as_int() * plan["context"].as_int();
    EXPECT_EQ(ranks * plan["data"].as_int(), 64);
    EXPECT_LE(plan["global_batch"].as_int(), 16);
    EXPECT_LE(plan["memory_bytes"]["device"].as_double(), answer["device_memory_bytes"].as_double());
  }
}

TEST(Autoplan, TakesTheDevicesMemoryFromTheEnvironment) {
  const CommandResult result = run_command("DEVICE_MEMORY_GB=2 " + app("autoplan") + k22b);
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("nothing fits"), std::string::npos) << result.err;
  const CommandResult wrong = run_command("DEVICE_MEMORY_GB=much " + app("autoplan") + k22b);
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("DEVICE_MEMORY_GB is \"much\""), std::string::npos) << wrong.err;
}

TEST(Autoplan, PlansForThisMachine) {
  const CommandResult result =
      run_command(app("autoplan") +
                  " --gpu local --global-batch-size 16 --num-layers 2 --hidden-size 64 "
                  "--num-attention-heads 4 --seq-length 64 --vocab-size 512");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("this machine's processor"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace megalith

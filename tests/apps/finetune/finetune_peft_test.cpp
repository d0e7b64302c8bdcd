// Tests that peft and transformers can load what megalith-finetune writes. Needs Python with both.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace megalith::test {
namespace {

TEST(FinetunePeft, LoadsAdaptersAndModels) {
  if (std::getenv("MEGALITH_PYTHON") == nullptr) GTEST_SKIP() << "MEGALITH_PYTHON names no Python";
  if (!python_has("torch transformers peft"))
    GTEST_SKIP() << python() << " has no torch, transformers and peft; see ./test --peers";
  const std::string build = std::filesystem::path(app("finetune")).parent_path().parent_path().string();
  const CommandResult result = run_command("BUILD=" + build + " " + python() + " " + MEGALITH_SOURCE_DIR +
                                           "/tools/peers/compare_peft.py llama gpt2");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find("0 failed"), std::string::npos) << result.all();
}

}  // namespace
}  // namespace megalith::test

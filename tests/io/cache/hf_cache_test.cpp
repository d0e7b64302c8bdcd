#include "libcore/io/cache/hf_cache.h"

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(HubId, IsOneOrTwoWords) {
  for (const char* good : {"gpt2", "openai-community/gpt2", "Qwen/Qwen2.5-0.5B"})
    EXPECT_TRUE(is_hub_id(good)) << good;
  for (const char* bad : {"", "a/b/c", "/gpt2", "gpt2/", "../gpt2", "./gpt2", "my model"})
    EXPECT_FALSE(is_hub_id(bad)) << bad;
}

// In huggingface_hub's cache, models--ORG--NAME/refs/main contains the COMMIT of the folder snapshots/COMMIT.
TEST(HubSnapshot, IsThatOfTheBranchMain) {
  const test::TempDir dir;
  const std::string model = dir / "hub/models--org--tiny";
  make_directories(model + "/refs");
  make_directories(model + "/snapshots/0123abc");
  write_file(model + "/refs/main", "0123abc");
  {
    const test::Variable home("HF_HOME", dir.path().string());
    EXPECT_EQ(hub_snapshot("org/tiny"), model + "/snapshots/0123abc");
    EXPECT_EQ(path_or_snapshot("org/tiny"), model + "/snapshots/0123abc");
    EXPECT_EQ(hub_snapshot("org/other"), std::nullopt);
    EXPECT_EQ(path_or_snapshot("org/other"), "org/other");
    EXPECT_NE(hub_remedy("org/other").find("`hf download org/other`"), std::string::npos);
    EXPECT_EQ(hub_remedy("/org/other"), "");
  }
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    const test::Variable cache(name, dir / "hub"), home("HF_HOME", "/nowhere");
    EXPECT_EQ(hub_snapshot("org/tiny"), model + "/snapshots/0123abc") << name;
  }
}

}  // namespace
}  // namespace megalith

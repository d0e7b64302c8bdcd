#include "libcore/doctor/disk_checks.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

TEST(DiskChecks, FindTheFolderThatExists) {
  const test::TempDir dir;
  EXPECT_EQ(existing_folder(dir / "a/b/c"), dir.path().string());
  EXPECT_EQ(existing_folder(dir.path().string()), dir.path().string());
  EXPECT_EQ(existing_folder("/none/of/them"), "/");
}

TEST(DiskChecks, MeasureSpaceRateAndLocksAndLeaveNothing) {
  const test::TempDir dir;
  const Findings found = check_disk(dir / "checkpoints");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].text.find(" are free"), std::string::npos) << found[0].text;
  EXPECT_NE(found[1].text.find(" writes a second reach the disk"), std::string::npos) << found[1].text;
  EXPECT_NE(found[2].text.find(" be locked"), std::string::npos) << found[2].text;
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace megalith

#include "libcore/io/files/temporary_folder.h"

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

TEST(TemporaryFolder, IsWhatTheEnvironmentNames) {
  const TempDir dir;
  const Variable where("TMPDIR", dir.path().string());
  EXPECT_EQ(temporary_folder(), dir.path());
  const Variable empty("TMPDIR", "");
  EXPECT_EQ(temporary_folder(), "/tmp");
}

TEST(TemporaryFolder, IsNamedWhenItIsNone) {
  const TempDir dir;
  write_file(dir / "file", "");
  const struct {
    std::string path, reason;
  } cases[] = {{dir / "none", "No such file or directory"}, {dir / "file", "Not a directory"}};
  for (const auto& c : cases) try {
      const Variable where("TMPDIR", c.path);
      ADD_FAILURE() << temporary_folder();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(std::string(error.what()), "TMPDIR=\"" + c.path + "\" in the environment: " + c.reason +
                                               "; wanted a folder for temporary files");
    }
}

// In these not even root may make a file.
TEST(TemporaryFolder, IsNamedWhereNothingCanBeMade) {
  for (const char* path : {"/proc", "/proc/self"}) try {
      const Variable where("TMPDIR", path);
      ADD_FAILURE() << temporary_folder();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(
          std::string_view(error.what()).find("TMPDIR=\"" + std::string(path) + "\" in the environment: "),
          0U)
          << error.what();
    }
  const TempDir dir;
  const Variable where("TMPDIR", dir.path().string());
  (void)temporary_folder();
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(OwnFolder, IsThereForItsOwnerOnlyWhileItLives) {
  std::string path;
  {
    const OwnFolder folder;
    path = folder.path();
    write_file(path + "/file", "x");
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace megalith::test

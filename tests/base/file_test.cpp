#include "libcore/base/file.h"

#include <csignal>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(AtomicFile, AppearsOnlyInCommit) {
  const test::TempDir dir;
  write_file(dir / "x", "old");
  {
    AtomicFile file(dir / "x");
    file.write(std::string(300'000, 'a'));  // more than the buffer
    file.write("end");
    EXPECT_EQ(file.size(), 300'003U);
    EXPECT_EQ(read_file(dir / "x"), "old");
    file.write_at(1, "b", 1);
    file.commit();
  }
  EXPECT_EQ(read_file(dir / "x"), "ab" + std::string(299'998, 'a') + "end");
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TempDir dir;
  {
    AtomicFile file(dir / "x");
    file.write(std::string(300'000, 'a'));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(AtomicFile, LeavesNothingWhenItsProcessIsKilled) {
  const test::TempDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(dir / "x");
    file.write(std::string(300'000, 'a'));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(file_exists(dir / "x"));
  const int nameless = ::open(dir.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no nameless files";
  ::close(nameless);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(AtomicFile, NamesTheFolderThatIsNotThere) {
  const test::TempDir dir;
  try {
    AtomicFile file(dir / "absent/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

}  // namespace
}  // namespace megalith

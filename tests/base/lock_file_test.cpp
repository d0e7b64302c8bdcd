#include "libcore/base/lock_file.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

bool can_lock(const std::string& path) {
  try {
    const LockFile lock(path);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find(path + ": another process is writing it"), std::string::npos);
    return false;
  }
}

TEST(LockFile, IsHeldByOneAtATime) {
  const test::TempDir dir;
  const std::string path = dir / "out";
  std::optional<LockFile> lock(std::in_place, path);
  EXPECT_FALSE(can_lock(path));
  EXPECT_TRUE(can_lock(dir / "other"));
  lock.reset();
  EXPECT_TRUE(can_lock(path));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(LockFile, TakesOverOneThatWasLeftBehind) {
  const test::TempDir dir;
  write_file(dir / ".out.lock", "");
  EXPECT_TRUE(can_lock(dir / "out"));
}

TEST(LockFile, NeedsAFolder) {
  const test::TempDir dir;
  EXPECT_THROW(LockFile(dir / "absent/out"), Error);
}

// Owners that come and go remove the file: nobody may hold the lock of one without a name.
TEST(LockFile, IsHeldByOneAtATimeWhileOwnersComeAndGo) {
  const test::TempDir dir;
  std::atomic<int> owners{0}, locked{0}, together{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        try {
          const LockFile lock(dir / "out");
          if (++owners > 1) ++together;
          ++locked;
          std::this_thread::yield();
          --owners;
        } catch (const Error&) {
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, 0);
  EXPECT_GT(locked, 0);
}

}  // namespace
}  // namespace megalith

#include "libcore/io/run/lock_file.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

bool can_lock(const std::string& path) {
  try {
    const LockFile lock(path);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kComm);
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

TEST(LockFile, RemovesWhatKilledWritersLeft) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  for (const char* const stale :
       {".out.tmp-12-0", ".out.bin.tmp-12-3", ".out.idx.tmp-1-0", ".out.json.tmp-7-1"})
    write_file(dir / stale, "");
  fs::create_directories(dir / ".out.tmp-99-0/deep");
  const std::vector<std::string> others = {".out2.tmp-12-0", ".out.tmp-",         ".out.tmp-x-0",
                                           ".out.tmp-1-0-0", ".out.gguf.tmp-1-0", "out.tmp-12-0",
                                           ".other.tmp-1-0"};
  for (const std::string& other : others) write_file(dir / other, "");
  fs::create_directory(dir / "out");
  {
    const LockFile lock(dir / "out/");
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}),
              static_cast<std::ptrdiff_t>(others.size()) + 2);  // the two more are `out` and its lock file
  }
  for (const std::string& other : others) EXPECT_TRUE(file_exists(dir / other)) << other;
}

TEST(LockFile, RemovesWhatKilledWritersLeftInAFolder) {
  const test::TempDir dir;
  const std::vector<std::string> left = {".iter_0000001.tmp-12-0", ".iter_.tmp-1-1"},
                                 stays = {".iter_1.tmp", ".iter_1.tmp-1-x", "iter_1.tmp-1-0",
                                          ".other.tmp-1-0", ".iter_1.tmp-1-0.mine"};
  for (const auto* names : {&left, &stays})
    for (const std::string& name : *names) write_file(dir / name, "");
  const LockFile lock(dir.path());
  lock.remove_leftovers_in(dir.path(), "iter_");
  for (const std::string& name : left) EXPECT_FALSE(file_exists(dir / name)) << name;
  for (const std::string& name : stays) EXPECT_TRUE(file_exists(dir / name)) << name;
}

/// Lets this process continue as an unprivileged user for whom `folder` is writable.
void become_somebody(const std::string& folder) {
  ::chmod(folder.c_str(), 0777);
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
    std::_Exit(2);
}

// Takes the lock as an unprivileged user, in a process of its own: root could read any file.
TEST(LockFileDeathTest, TakesOverOneThatAnotherUserLeftBehind) {
  const test::TempDir dir;
  write_file(dir / ".out.lock", "");
  ::chmod((dir / ".out.lock").c_str(), 0444);
  EXPECT_EXIT(
      {
        become_somebody(dir.path());
        const bool locked = can_lock(dir / "out");
        std::_Exit(locked && std::filesystem::is_empty(dir.path()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(LockFileDeathTest, RespectsTheLockOfAnotherUser) {
  const test::TempDir dir;
  const LockFile lock(dir / "out");
  ::chmod((dir / ".out.lock").c_str(), 0444);
  EXPECT_EXIT(
      {
        become_somebody(dir.path());
        std::_Exit(can_lock(dir / "out") ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(LockFileDeathTest, NamesTheOwnerOfOneThatCannotBeRead) {
  const test::TempDir dir;
  write_file(dir / ".out.lock", "");
  ::chmod((dir / ".out.lock").c_str(), 0);
  EXPECT_EXIT(
      {
        become_somebody(dir.path());
        try {
          const LockFile lock(dir / "out");
        } catch (const Error& error) {
          std::fprintf(stderr, "%d %s\n", static_cast<int>(error.kind()), error.what());
          std::_Exit(3);
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(3),
      "\\.out\\.lock: belongs to the user .* and cannot be opened: Permission denied; it belongs to a run .* "
      "remove it");
}

TEST(LockFileDeathTest, NamesTheFolderThatCannotBeWritten) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir / "closed");
  ::chmod((dir / "closed").c_str(), 0555);
  EXPECT_EXIT(
      {
        become_somebody(dir.path());
        try {
          const LockFile lock(dir / "closed/out");
        } catch (const Error& error) {
          std::fprintf(stderr, "%d %s\n", static_cast<int>(error.kind()), error.what());
          std::_Exit(3);
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(3),
      "^74 .*/closed: cannot write to this folder \\(Permission denied\\), which is to hold "
      "\".*/closed/out\"; ");
}

TEST(LockFile, NeedsAFolder) {
  const test::TempDir dir;
  EXPECT_THROW(LockFile(dir / "absent/out"), Error);
}

// An owner removes the lock file when it ends. Another process must not end up with a lock on a file that has
// lost its name.
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

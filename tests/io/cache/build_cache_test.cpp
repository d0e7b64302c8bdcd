#include "libcore/io/cache/build_cache.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

/// A text of 64 characters that serves as a SHA-256.
std::string source(int number) {
  return std::string(63, 'a') + static_cast<char>('0' + number);
}

// tests/support/once/own_cache.cpp
TEST(CacheFolder, OfTestsAndTheirProgramsIsTheirOwn) {
  const std::string own = (std::filesystem::temp_directory_path() / "megalith-test-").string();
  EXPECT_EQ(cache_folder().rfind(own, 0), 0U) << cache_folder();
  EXPECT_EQ(test::run_command("echo $MEGALITH_CACHE_DIR").out, cache_folder() + "\n");
}

TEST(CacheFolder, IsThatOfTheFirstVariableSet) {
  const test::Variable home("HOME", "/h");
  const test::Variable xdg("XDG_CACHE_HOME", std::nullopt), own("MEGALITH_CACHE_DIR", std::nullopt);
  EXPECT_EQ(cache_folder(), "/h/.cache/megalith");
  {
    const test::Variable set("XDG_CACHE_HOME", "/x");
    EXPECT_EQ(cache_folder(), "/x/megalith");
    const test::Variable both("MEGALITH_CACHE_DIR", "/m");
    EXPECT_EQ(cache_folder(), "/m");
  }
  for (const char* const relative : {"", ".", "cache", "../x"}) {
    const test::Variable set("XDG_CACHE_HOME", relative);
    EXPECT_EQ(cache_folder(), "/h/.cache/megalith") << relative;
    const test::Variable home_too("HOME", relative);
    EXPECT_EQ(cache_folder(), "") << relative;
  }
  const test::Variable none("HOME", std::nullopt);
  EXPECT_EQ(cache_folder(), "");
  EXPECT_FALSE(CachedFile("kind", 1, source(1)).load());
  CachedFile("kind", 1, source(1)).store("nowhere");
}

TEST(CachedFile, GivesBackWhatWasStoredForTheSameSource) {
  const test::TempDir dir;
  const test::Variable own("MEGALITH_CACHE_DIR", (dir / "new/folder").c_str());
  const std::string contents("a\0b", 3);
  EXPECT_FALSE(CachedFile("kind", 1, source(1)).load());
  CachedFile("kind", 1, source(1)).store(contents);
  EXPECT_EQ(CachedFile("kind", 1, source(1)).load()->text(), contents);
  EXPECT_FALSE(CachedFile("kind", 1, source(2)).load());
  EXPECT_FALSE(CachedFile("other", 1, source(1)).load());
  CachedFile("kind", 1, source(1)).store("");
  EXPECT_EQ(CachedFile("kind", 1, source(1)).load()->text(), "");
}

TEST(CachedFile, TakesThePlaceOfOlderForms) {
  const test::TempDir dir;
  const test::Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
  for (const int form : {1, 2, 3, 4}) {
    CachedFile("kind", form, source(1)).store("1");
    CachedFile("kind", form, source(2)).store("2");
    CachedFile("kin", form, source(1)).store("other");
    EXPECT_TRUE(CachedFile("kind", form, source(1)).load());
  }
  EXPECT_FALSE(CachedFile("kind", 3, source(1)).load());
  CachedFile("kind", 2, source(1)).store("of a program as old as that");
  CachedFile("kind", 3, source(1)).store("newer");
  EXPECT_FALSE(CachedFile("kind", 2, source(1)).load());
  EXPECT_EQ(CachedFile("kind", 4, source(1)).load()->text(), "1");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "cache"))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left.size(), 4U);
}

/// The id of a process that has ended.
pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(CachedFile, RemovesWhatKilledProcessesLeftInItsFolder) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  const std::string dead = concat(".tmp-", ended_process(), "-0"), alive = concat(".tmp-", ::getppid(), "-0");
  const std::string kept = ".gpt-index-1-" + source(1), other = ".token-check-2-" + source(2);
  const std::vector<std::string> left = {kept + dead, other + dead, kept + alive};
  const std::vector<std::string> stays = {other + alive,
                                          ".gpt-index-1-" + source(3) + dead,  // was written just now
                                          ".mine" + dead,
                                          kept.substr(1) + dead,
                                          kept,
                                          ".gpt-index-1-" + source(1).substr(1) + dead,
                                          ".gpt-index-x-" + source(1) + dead};
  for (const auto* names : {&left, &stays})
    for (const std::string& name : *names) write_file(dir / name, "");
  // A process of another machine may write a temporary file for minutes, and its number says nothing here.
  const auto written = [&](const std::string& name, auto ago) {
    fs::last_write_time(dir / name, fs::file_time_type::clock::now() - ago);
  };
  for (size_t i = 0; i < 2; ++i) written(left[i], std::chrono::minutes(11));
  written(left[2], std::chrono::hours(2));
  written(stays[0], std::chrono::minutes(50));
  for (size_t i = 2; i < stays.size(); ++i) written(stays[i], std::chrono::hours(2));
  CachedFile(dir.path(), "gpt-index", 1, source(1)).store("contents");
  for (const std::string& name : left) EXPECT_FALSE(file_exists(dir / name)) << name;
  for (const std::string& name : stays) EXPECT_TRUE(file_exists(dir / name)) << name;
  EXPECT_EQ(CachedFile(dir.path(), "gpt-index", 1, source(1)).load()->text(), "contents");
}

TEST(CachedFile, IgnoresADamagedFileWithOneLine) {
  const test::TempDir dir;
  const test::Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
  const CachedFile cached("kind", 1, source(1));
  cached.store("some contents");
  const std::string good = read_file(cached.path());
  test::LogLines log;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    for (const std::string& damaged : {bad, good.substr(0, at)}) {
      write_file(cached.path(), damaged);
      log.lines.clear();
      EXPECT_FALSE(cached.load()) << at;
      ASSERT_EQ(log.lines.size(), 1U);
      EXPECT_NE(log.lines[0].find("damaged"), std::string::npos);
    }
  }
  cached.store("some contents");
  EXPECT_EQ(cached.load()->text(), "some contents");
}

TEST(CachedFile, IsOfItsSourceAlone) {
  const test::TempDir dir;
  const test::Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
  CachedFile("kind", 1, source(1)).store("contents");
  const test::LogLines log;
  std::filesystem::rename(CachedFile("kind", 1, source(1)).path(), CachedFile("kind", 1, source(2)).path());
  EXPECT_FALSE(CachedFile("kind", 1, source(2)).load());
}

/// A cached file is used only if nobody except this user and root can write or replace it.
TEST(CachedFile, SaysThatANamedFolderKeepsNothing) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  fs::create_directory(dir / "shared");
  fs::permissions(dir / "shared", fs::perms::all);
  const test::LogLines log;
  const CachedFile cached(dir / "shared", "kind", 1, source(1));
  EXPECT_FALSE(cached.load());
  EXPECT_TRUE(log.lines.empty());
  cached.store("contents");
  CachedFile(dir / "shared", "kind", 1, source(2)).store("contents");
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("files are not kept: others may write in"), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[0].find("--data-cache-path"), std::string::npos) << log.lines[0];
  EXPECT_TRUE(fs::is_empty(dir / "shared"));
}

TEST(CachedFile, SaysOnceThatANamedFolderCannotBeWritten) {
  const test::TempDir dir;
  write_file(dir / "file", "");
  const test::LogLines log;
  for (const int number : {1, 2}) CachedFile(dir / "file/below", "kind", 1, source(number)).store("contents");
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("file/below: its files are not kept: "), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[0].find("Not a directory"), std::string::npos) << log.lines[0];
}

TEST(CachedFile, IsNotUsedWhereOthersMayWrite) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  fs::create_directory(dir.path() / "home");
  const test::Variable own("MEGALITH_CACHE_DIR", std::string(dir / "home/cache").c_str());
  const CachedFile cached("kind", 1, source(1));
  cached.store("contents");
  const std::string file = cached.path(), folder = dir / "home/cache", above = dir / "home";
  test::LogLines log;
  const auto loads = [&] {
    log.lines.clear();
    const bool loaded = cached.load() != nullptr;
    EXPECT_EQ(log.lines.size(), loaded ? 0U : 1U);
    return loaded;
  };
  EXPECT_TRUE(loads());
  const auto mode = [](const std::string& path) { return fs::status(path).permissions(); };
  for (const std::string& path : {file, folder, above}) {
    const fs::perms before = mode(path);
    for (const fs::perms open : {fs::perms::group_write, fs::perms::others_write}) {
      fs::permissions(path, before | open);
      EXPECT_FALSE(loads()) << path;
      if (path != file) {
        fs::remove(dir / "home/cache/kind-1-" + source(2));
        CachedFile("kind", 1, source(2)).store("more");
        EXPECT_FALSE(file_exists(dir / "home/cache/kind-1-" + source(2))) << path;
      }
    }
    fs::permissions(path, before);
    EXPECT_TRUE(loads());
    if (::geteuid() == 0) {  // only root can change a file's owner
      EXPECT_EQ(::lchown(path.c_str(), 65534, 65534), 0);
      EXPECT_FALSE(loads()) << path;
      EXPECT_EQ(::lchown(path.c_str(), 0, 0), 0);
    }
  }
  fs::permissions(above, fs::perms::all | fs::perms::sticky_bit);  // as /tmp has
  EXPECT_TRUE(loads());
  fs::rename(file, dir / "elsewhere");
  fs::create_symlink(dir / "elsewhere", file);
  EXPECT_FALSE(loads());
}

TEST(CachedFile, IsThereWhereItCanBeLoaded) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  const CachedFile cached(dir / "cache", "kind", 1, source(1));
  EXPECT_FALSE(cached.is_there());
  cached.store("contents");
  EXPECT_TRUE(cached.is_there());
  fs::permissions(dir / "cache", fs::perms::all);
  EXPECT_FALSE(cached.is_there());
  EXPECT_FALSE(CachedFile("", "kind", 1, source(1)).is_there());
}

TEST(Keeping, DependsOnTheFolder) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  write_file(dir / "file", "");
  fs::create_directory(dir / "shared");
  fs::permissions(dir / "shared", fs::perms::all | fs::perms::sticky_bit);
  for (const char* name : {"file", "file/below", "shared"}) EXPECT_EQ(keeping_in(dir / name), Keeping::kNot);
  EXPECT_NE(keeping_in(dir.path()), Keeping::kNot);
  // folders that do not exist are made with the permissions that keep others out
  for (const char* name : {"new", "new/below", "shared/new"})
    EXPECT_EQ(keeping_in(dir / name), keeping_in(dir.path())) << name;
}

TEST(Keeping, IsInMemoryOnTmpfs) {
  std::ifstream mounts("/proc/mounts");
  const std::string text{std::istreambuf_iterator<char>(mounts), {}};
  if (text.find(" /dev/shm tmpfs rw") == std::string::npos) GTEST_SKIP() << "no tmpfs in /dev/shm";
  EXPECT_EQ(keeping_in("/dev/shm/megalith-none"), Keeping::kInMemory);
}

TEST(CachedFile, IsClosedToOthersWhateverTheUmask) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  const test::Variable own("MEGALITH_CACHE_DIR", std::string(dir / "a/b").c_str());
  for (const mode_t mask : {0000, 0002, 0022}) {
    const mode_t before = ::umask(mask);
    const CachedFile cached("kind", 1, source(1));
    cached.store("contents");
    ::umask(before);
    EXPECT_TRUE(cached.load()) << mask;
    for (const std::string& path : {dir / "a", dir / "a/b", cached.path()})
      EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all), fs::perms{})
          << path;
    fs::remove_all(dir / "a");
  }
}

TEST(CachedFile, LivesWithAFolderThatCannotBeMade) {
  const test::TempDir dir;
  write_file(dir / "file", "");
  const test::Variable own("MEGALITH_CACHE_DIR", std::string(dir / "file").c_str());
  CachedFile("kind", 1, source(1)).store("contents");
  EXPECT_FALSE(CachedFile("kind", 1, source(1)).load());
}

}  // namespace
}  // namespace megalith

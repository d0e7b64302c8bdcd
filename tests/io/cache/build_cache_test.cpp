#include "libcore/io/cache/build_cache.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/io/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

/// An environment variable for the length of a test; nullptr: not set.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

/// In place of a SHA-256.
std::string source(int number) {
  return std::string(63, 'a') + static_cast<char>('0' + number);
}

TEST(CacheFolder, IsThatOfTheFirstVariableSet) {
  const Variable home("HOME", "/h");
  const Variable xdg("XDG_CACHE_HOME", nullptr), own("MEGALITH_CACHE_DIR", nullptr);
  EXPECT_EQ(cache_folder(), "/h/.cache/megalith");
  {
    const Variable set("XDG_CACHE_HOME", "/x");
    EXPECT_EQ(cache_folder(), "/x/megalith");
    const Variable both("MEGALITH_CACHE_DIR", "/m");
    EXPECT_EQ(cache_folder(), "/m");
  }
  for (const char* const relative : {"", ".", "cache", "../x"}) {
    const Variable set("XDG_CACHE_HOME", relative);
    EXPECT_EQ(cache_folder(), "/h/.cache/megalith") << relative;
    const Variable home_too("HOME", relative);
    EXPECT_EQ(cache_folder(), "") << relative;
  }
  const Variable none("HOME", nullptr);
  EXPECT_EQ(cache_folder(), "");
  EXPECT_FALSE(CachedFile("kind", 1, source(1)).load());
  CachedFile("kind", 1, source(1)).store("nowhere");
}

TEST(CachedFile, GivesBackWhatWasStoredForTheSameSource) {
  const test::TempDir dir;
  const Variable own("MEGALITH_CACHE_DIR", (dir / "new/folder").c_str());
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
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
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

TEST(CachedFile, IgnoresADamagedFileWithOneLine) {
  const test::TempDir dir;
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
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
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
  CachedFile("kind", 1, source(1)).store("contents");
  const test::LogLines log;
  std::filesystem::rename(CachedFile("kind", 1, source(1)).path(), CachedFile("kind", 1, source(2)).path());
  EXPECT_FALSE(CachedFile("kind", 1, source(2)).load());
}

/// Whoever may write the file, or put another one in its place, is this user or root.
TEST(CachedFile, IsNotUsedWhereOthersMayWrite) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  fs::create_directory(dir.path() / "home");
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "home/cache").c_str());
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
    if (::geteuid() == 0) {  // only root can give a file away
      EXPECT_EQ(::lchown(path.c_str(), 65534, 65534), 0);
      EXPECT_FALSE(loads()) << path;
      EXPECT_EQ(::lchown(path.c_str(), 0, 0), 0);
    }
  }
  fs::permissions(above, fs::perms::all | fs::perms::sticky_bit);  // as /tmp is
  EXPECT_TRUE(loads());
  fs::rename(file, dir / "elsewhere");
  fs::create_symlink(dir / "elsewhere", file);
  EXPECT_FALSE(loads());
}

TEST(CachedFile, IsClosedToOthersWhateverTheUmask) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "a/b").c_str());
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
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "file").c_str());
  CachedFile("kind", 1, source(1)).store("contents");
  EXPECT_FALSE(CachedFile("kind", 1, source(1)).load());
}

}  // namespace
}  // namespace megalith

#include "libcore/io/build_cache.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

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
  const Variable none("HOME", nullptr);
  EXPECT_EQ(cache_folder(), "");
  EXPECT_FALSE(CachedFile("kind", 1, 1).load());
  CachedFile("kind", 1, 1).store("nowhere");
}

TEST(CachedFile, GivesBackWhatWasStoredForTheSameSource) {
  const test::TempDir dir;
  const Variable own("MEGALITH_CACHE_DIR", (dir / "new/folder").c_str());
  const std::string contents("a\0b", 3);
  EXPECT_FALSE(CachedFile("kind", 1, 1).load());
  CachedFile("kind", 1, 1).store(contents);
  EXPECT_EQ(CachedFile("kind", 1, 1).load()->text(), contents);
  EXPECT_FALSE(CachedFile("kind", 1, 2).load());
  EXPECT_FALSE(CachedFile("other", 1, 1).load());
  CachedFile("kind", 1, 1).store("");
  EXPECT_EQ(CachedFile("kind", 1, 1).load()->text(), "");
}

TEST(CachedFile, TakesThePlaceOfOlderForms) {
  const test::TempDir dir;
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
  for (const int form : {1, 2, 3, 4}) {
    CachedFile("kind", form, 1).store("1");
    CachedFile("kind", form, 2).store("2");
    CachedFile("kin", form, 1).store("other");
    EXPECT_TRUE(CachedFile("kind", form, 1).load());
  }
  EXPECT_FALSE(CachedFile("kind", 3, 1).load());
  CachedFile("kind", 2, 1).store("of a program as old as that");
  CachedFile("kind", 3, 1).store("newer");
  EXPECT_FALSE(CachedFile("kind", 2, 1).load());
  EXPECT_EQ(CachedFile("kind", 4, 1).load()->text(), "1");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "cache"))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left.size(), 4U);
}

TEST(CachedFile, IgnoresADamagedFileWithOneLine) {
  const test::TempDir dir;
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "cache").c_str());
  const CachedFile cached("kind", 1, 1);
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

TEST(CachedFile, LivesWithAFolderThatCannotBeMade) {
  const test::TempDir dir;
  write_file(dir / "file", "");
  const Variable own("MEGALITH_CACHE_DIR", std::string(dir / "file").c_str());
  CachedFile("kind", 1, 1).store("contents");
  EXPECT_FALSE(CachedFile("kind", 1, 1).load());
}

}  // namespace
}  // namespace megalith

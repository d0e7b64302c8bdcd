// Runs tools/release in a repository of its own, whose tests, build and packages are scripts.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"
#include "tests/support/scripts.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;

class Release : public testing::Test {
 protected:
  Release() {
    make_directories(dir_ / "tree/tools");
    fs::copy_file(MEGALITH_SOURCE_DIR "/tools/release", dir_ / "tree/tools/release");
    write_script(dir_ / "tree/test", "[ ! -e ../red ]\n");
    write_script(
        dir_ / "tree/tools/package",
        "case $* in *--check) [ ! -e ../toolless ] || exit 69 ;; *) echo \"$@\" >../packaged ;; esac\n");
    write_script(dir_ / "bin/cmake",
                 "echo \"$@\" >>" + (dir_ / "built") + "; [ ! -e " + (dir_ / "broken") + " ]\n");
    write_file(dir_ / "tree/.gitignore", "build/\n");
    write_file(dir_ / "tree/CMakeLists.txt", "project(megalith VERSION 0.1.0 LANGUAGES CXX)\n");
    write_file(
        dir_ / "tree/CHANGELOG.md",
        "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A doctor.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n");
    git("init -q && git add . && git commit -q -m '[all] Begin'");
    git("tag v0.1.0");
  }
  CommandResult git(const std::string& command) const { return in_tree("git " + command); }
  CommandResult release(const std::string& version) const { return in_tree("tools/release " + version); }
  CommandResult in_tree(const std::string& command) const {
    return run_command(
        concat("cd ", dir_ / "tree", " && export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a ",
               "GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b PATH=", dir_ / "bin",
               ":$PATH && ", command));
  }
  /// Expects that the release is refused, and that nothing was changed or made.
  void expect_refusal(const std::string& version, int code, const std::string& reason) const {
    const std::string before = git("rev-parse HEAD && git status --short").out;
    const CommandResult result = release(version);
    EXPECT_EQ(result.code, code) << result.all();
    EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
    EXPECT_EQ(git("rev-parse HEAD && git status --short").out, before);
    EXPECT_FALSE(file_exists(dir_ / "packaged"));
  }
  TempDir dir_;
};

TEST_F(Release, MakesASectionACommitAndPackagesAndNamesTheTag) {
  const CommandResult result = release("0.2.0");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(result.out, "git tag --annotate v0.2.0 --message \"Megalith 0.2.0\"\n");
  EXPECT_TRUE(Pattern("## \\[Unreleased\\]\n\n## \\[0\\.2\\.0\\] - 20[0-9-]{8}\n\n### Added\n\n- A "
                      "doctor.\n\n## \\[0\\.1\\.0\\]")
                  .is_in(read_file(dir_ / "tree/CHANGELOG.md")))
      << read_file(dir_ / "tree/CHANGELOG.md");
  EXPECT_EQ(read_file(dir_ / "tree/CMakeLists.txt"), "project(megalith VERSION 0.2.0 LANGUAGES CXX)\n");
  EXPECT_EQ(git("status --short").out, "");
  EXPECT_EQ(git("log -1 --format=%s").out, "[release] Name this tree 0.2.0\n");
  EXPECT_EQ(read_file(dir_ / "packaged"), "wheel tarball deb container --output dist/0.2.0\n");
  EXPECT_EQ(read_file(dir_ / "built"), "--preset release\n--build --preset release --target apps\n");
}

TEST_F(Release, PackagesThePluginWhereTheBuildHasIt) {
  make_directories(dir_ / "tree/build/release/lib");
  write_file(dir_ / "tree/build/release/lib/libmegalith_cuda.so", "");
  EXPECT_EQ(release("0.2.0").code, 0);
  EXPECT_EQ(read_file(dir_ / "packaged"), "wheel tarball deb container cuda-wheel --output dist/0.2.0\n");
}

// Asked before the tests, which take an hour.
TEST_F(Release, RefusesWhereAPackageCannotBeMade) {
  write_file(dir_ / "red", "");
  write_file(dir_ / "toolless", "");
  expect_refusal("0.2.0", 69, "");
}

TEST_F(Release, RefusesAVersionThatIsNotAboveTheLast) {
  git("tag v0.10.0");
  for (const char* version : {"0.1.0", "0.10.0", "0.9.9"}) expect_refusal(version, 64, "is not above 0.10.0");
  for (const char* version : {"", "1", "v1.0.0", "1.0", "1.0.0-rc1", "01.0.0", "1.0.0.0"})
    expect_refusal(version, 64, "wanted MAJOR.MINOR.PATCH");
}

TEST_F(Release, RefusesADirtyTreeRedTestsAndAnEmptySection) {
  write_file(dir_ / "tree/new", "");
  expect_refusal("0.2.0", 65, "not committed");
  fs::remove(dir_ / "tree/new");
  write_file(dir_ / "red", "");
  expect_refusal("0.2.0", 70, "a test failed");
  fs::remove(dir_ / "red");
  write_file(dir_ / "tree/CHANGELOG.md",
             "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n\n- All.\n");
  git("commit -q -a -m '[all] Say nothing'");
  expect_refusal("0.2.0", 65, "nothing under Unreleased");
}

TEST_F(Release, SaysHowToUndoTheCommitOfABuildThatFails) {
  write_file(dir_ / "broken", "");
  const CommandResult result = release("0.2.0");
  EXPECT_EQ(result.code, 70);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("git reset --hard HEAD^"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace megalith::test

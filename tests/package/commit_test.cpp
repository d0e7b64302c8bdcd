// Runs cmake/write_commit.cmake, which each build runs.
#include <chrono>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;

class WrittenCommit : public testing::Test {
 protected:
  WrittenCommit() { fs::create_directories(dir_ / "tree/below"); }
  std::string git(const std::string& command) const {
    const CommandResult result =
        run_command(concat("cd ", dir_ / "tree",
                           " && GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b "
                           "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b git ",
                           command));
    EXPECT_EQ(result.code, 0) << command << result.all();
    return result.out;
  }
  void commit(const std::string& text) const {
    write_file(dir_ / "tree/file", text);
    git("init -q");
    git("add .");
    git("commit -q -m '[all] Change'");
  }
  /// The text of the file that the script writes for a folder.
  std::string written(const std::string& folder = "tree") const {
    const CommandResult result = run_command(concat("GIT_CEILING_DIRECTORIES=", dir_.path().string(),
                                                    " cmake -DSOURCE=", dir_ / folder, " -DOUTPUT=", file_,
                                                    " -P " MEGALITH_SOURCE_DIR "/cmake/write_commit.cmake"));
    EXPECT_EQ(result.code, 0) << result.all();
    return read_file(file_);
  }
  TempDir dir_;
  const std::string file_ = dir_ / "commit.cpp";
};

TEST_F(WrittenCommit, IsTheShortHashAndSaysWhatIsNotCommitted) {
  commit("a");
  const std::string hash = git("rev-parse --short=12 HEAD").substr(0, 12);
  EXPECT_NE(written().find('"' + hash + '"'), std::string::npos) << written();
  write_file(dir_ / "tree/file", "b");
  EXPECT_NE(written().find('"' + hash + "-dirty\""), std::string::npos) << written();
}

// A file that is written again would be compiled again.
TEST_F(WrittenCommit, IsWrittenOnlyWhenItChanged) {
  commit("a");
  const std::string before = written();
  const fs::file_time_type old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(file_, old);
  EXPECT_EQ(written(), before);
  EXPECT_EQ(fs::last_write_time(file_), old);
  commit("b");
  EXPECT_NE(written(), before);
}

TEST_F(WrittenCommit, IsUnknownOutsideOfARepositoryAndBelowAnother) {
  EXPECT_NE(written().find("\"unknown\""), std::string::npos) << written();
  commit("a");
  EXPECT_NE(written("tree/below").find("\"unknown\""), std::string::npos) << written("tree/below");
}

}  // namespace
}  // namespace megalith::test

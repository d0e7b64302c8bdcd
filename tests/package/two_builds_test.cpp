// Builds the same commit in two folders of other names and compares the packages.
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/package/package.h"
#include "tests/support/files.h"
#include "tests/support/large.h"

namespace megalith::test {
namespace {

TEST(TwoBuilds, InFoldersOfOtherNamesGiveTheSamePackages) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  if (const std::string why = why_no_package(); !why.empty()) GTEST_SKIP() << why;
  const TempDir dir;
  for (const char* folder : {"one", "another of a longer name"}) {
    const std::string tree = dir / folder;
    const CommandResult made =
        run_command(concat("git clone --quiet " MEGALITH_SOURCE_DIR " '", tree, "' && cd '", tree,
                           "' && cmake --preset release -DMEGALITH_TESTS=OFF -DMEGALITH_CUDA=OFF && cmake "
                           "--build --preset release "
                           "--target apps && tools/package wheel tarball --level 1"));
    ASSERT_EQ(made.code, 0) << made.all();
  }
  EXPECT_EQ(read_file(dir / "one/dist/SHA256SUMS"),
            read_file(dir / "another of a longer name/dist/SHA256SUMS"));
}

}  // namespace
}  // namespace megalith::test

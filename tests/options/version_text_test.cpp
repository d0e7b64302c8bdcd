#include "libcore/options/version_text.h"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The first line of what a command prints, or `otherwise` if it fails.
std::string first_line(const std::string& command, const std::string& otherwise) {
  const test::CommandResult result = test::run_command(command);
  return result.code == 0 ? lines_of(result.out).at(0) : otherwise;
}

TEST(VersionText, NamesCommitCompilerKernelsAndPlugins) {
  const std::vector<std::string> lines = lines_of(version_text("megalith-ride"));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "megalith-ride 0.1.0");
  const std::string commit =
      first_line("git -C " MEGALITH_SOURCE_DIR " rev-parse --verify --short=12 HEAD", "unknown");
  // A test may run after a later commit than the one that was built.
  EXPECT_TRUE(
      lines[1] == "commit: " + commit || lines[1] == "commit: " + commit + "-dirty" ||
      test::run_command("git -C " MEGALITH_SOURCE_DIR " cat-file -e " + lines[1].substr(8, 12)).code == 0)
      << lines[1];
  EXPECT_TRUE(lines[2].starts_with("compiler: g++ ") || lines[2].starts_with("compiler: clang ")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("kernels: ")) << lines[3];
  for (const char* plugin : {"onednn", "yaml", "decoder"})
    EXPECT_NE(lines[4].find(plugin), std::string::npos) << lines[4];
}

}  // namespace
}  // namespace megalith

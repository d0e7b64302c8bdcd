#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::test {

/// A fresh folder under the system's temporary folder, removed with everything in it at the end of the test.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Bytes for files whose contents do not matter.
std::string random_bytes(std::mt19937& random, size_t bytes);

/// A file of the repository's tests/ folder: test_data("data/goldens/x.json").
std::string test_data(std::string_view path);

/// The path of a page's file: "README.md" and the like are in the root folder, pages with lower-case names in
/// docs/.
std::string page_path(std::string_view page);

/// The commands of the ```sh blocks of a page: doc_commands("convert.md"). A
/// command has all lines that a backslash or an open quote joins to it; blank lines and comments are left
/// out.
std::vector<std::string> doc_commands(std::string_view page);

/// Runs a shell command and waits for it; keeps stdout and stderr.
struct CommandResult {
  int code = 0;
  std::string out, err;
  /// Both streams, for programs whose log goes to stdout and whose warnings and errors go to stderr.
  std::string all() const { return out + err; }
};
CommandResult run_command(const std::string& command);
/// Path of a built binary: app("preprocess") is .../bin/megalith-preprocess.
std::string app(std::string_view name);

}  // namespace megalith::test

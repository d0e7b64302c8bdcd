#pragma once

#include <filesystem>
#include <map>
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
  std::string operator/(std::string_view name) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Random bytes, for files whose contents do not matter.
std::string random_bytes(std::mt19937& random, size_t bytes);

/// The path of a file in the repository's tests/ folder: test_data("data/goldens/x.json").
std::string test_data(std::string_view path);

/// The SHA-256 of each of a checkpoint's files, by name. Without args.json, which contains folder names, and
/// index.json, which contains a checksum of it.
std::map<std::string, std::string> checkpoint_contents(const std::string& folder);

/// The path of a page's file. "README.md" and other pages in upper case are in the root folder, those in
/// lower case in docs/.
std::string page_path(std::string_view page);

/// The commands in the ```sh blocks of a page: doc_commands("convert.md"). Lines that a backslash or an open
/// quote joins are one command. Blank lines and comments are left out.
std::vector<std::string> doc_commands(std::string_view page);

/// The result of a shell command: exit code, stdout and stderr. run_command() runs a command and waits for
/// it.
struct CommandResult {
  int code = 0;
  std::string out, err;
  /// Both streams together, since some programs write their log to stdout but warnings and errors to stderr.
  std::string all() const { return out + err; }
};
CommandResult run_command(const std::string& command);
/// The Python that MEGALITH_PYTHON names, else that of .venv (tools/setup), else python3.
std::string python();
/// Whether it has these modules, named with spaces between. It does not import them: a module that is there
/// and broken must fail the test, not skip it.
bool python_has(const std::string& modules);
/// The path of a built program: .../bin/megalith-preprocess for app("preprocess").
std::string app(std::string_view name);

}  // namespace megalith::test

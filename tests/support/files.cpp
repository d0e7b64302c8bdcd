#include "tests/support/files.h"

#include <atomic>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"

namespace megalith::test {
namespace fs = std::filesystem;

TempDir::TempDir() {
  static std::atomic<int> counter{0};
  path_ = fs::temp_directory_path() / concat("megalith-test-", getpid(), "-", counter++);
  fs::create_directories(path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string random_bytes(std::mt19937& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string test_data(std::string_view path) {
  return concat(MEGALITH_SOURCE_DIR, "/tests/", path);
}

std::vector<std::string> doc_commands(std::string_view page) {
  std::vector<std::string> found;
  bool inside = false;
  for (const std::string& line : split(read_file(concat(MEGALITH_SOURCE_DIR, "/docs/", page)), '\n')) {
    if (line.starts_with("```"))
      inside = line == "```sh";
    else if (inside)
      found.push_back(line);
  }
  return found;
}

CommandResult run_command(const std::string& command) {
  const TempDir dir;
  const int status =
      std::system(("{ " + command + "\n} >" + dir / "out" + " 2>" + dir / "err" + " </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(dir / "out"),
          read_file(dir / "err")};
}

std::string app(std::string_view name) {
  return concat(MEGALITH_BINARY_DIR, "/bin/megalith-", name);
}

}  // namespace megalith::test

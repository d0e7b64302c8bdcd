#include "tests/support/files.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/files/file.h"

namespace megalith::test {
namespace fs = std::filesystem;

TempDir::TempDir() {
  // The name does not contain the process id: when an id is reused, the folder of a killed test may still
  // exist.
  std::string path = (fs::temp_directory_path() / "megalith-test-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw fs::filesystem_error("mkdtemp", path, {errno, std::generic_category()});
  path_ = path;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
std::string TempDir::operator/(std::string_view name) const {
  return (path_ / name).string();
}

std::string random_bytes(std::mt19937& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string test_data(std::string_view path) {
  return concat(MEGALITH_SOURCE_DIR, "/tests/", path);
}

namespace {

/// Whether a shell command continues on the next line: it ends in a backslash or inside quotes.
bool continues(std::string_view command) {
  char quote = 0;
  for (const char c : command) {
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
  }
  return quote != 0 || command.ends_with('\\');
}

}  // namespace

std::map<std::string, std::string> checkpoint_contents(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (entry.is_regular_file() && name != "args.json" && name != "index.json")
      contents[name] = sha256_hex(read_file(entry.path().string()));
  }
  return contents;
}

std::string page_path(std::string_view page) {
  const bool of_the_root = page[0] >= 'A' && page[0] <= 'Z';
  return concat(MEGALITH_SOURCE_DIR, of_the_root ? "/" : "/docs/", page);
}

std::vector<std::string> doc_commands(std::string_view page) {
  std::vector<std::string> found;
  bool inside = false, open = false;
  for (const std::string& line : split(read_file(page_path(page)), '\n')) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
      open = false;
    } else if (inside && open) {
      found.back() += '\n' + line;
      open = continues(found.back());
    } else if (inside && !line.empty() && !line.starts_with('#')) {
      found.push_back(line);
      open = continues(line);
    }
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

std::string python() {
  if (const char* const given = std::getenv("MEGALITH_PYTHON")) return given;
  const std::string own = concat(MEGALITH_SOURCE_DIR, "/.venv/bin/python");
  return file_exists(own) ? own : "python3";
}

bool python_has(const std::string& modules) {
  return run_command(concat(python(),
                            " -c 'import importlib.util, sys; "
                            "sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))' ",
                            modules))
             .code == 0;
}

std::string app(std::string_view name) {
  return concat(MEGALITH_BINARY_DIR, "/bin/megalith-", name);
}

}  // namespace megalith::test

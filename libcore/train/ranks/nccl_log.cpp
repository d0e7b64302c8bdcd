#include "libcore/train/ranks/nccl_log.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include <pwd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr char kLevel[] = "NCCL_DEBUG", kParts[] = "NCCL_DEBUG_SUBSYS", kFile[] = "NCCL_DEBUG_FILE";

/// Files of this process, by number. A child that inherits the variables has another folder.
std::string own_files() {
  return concat("/proc/", getpid(), "/fd/");
}

/// The file of this process that keep_nccl_log() has named; nullptr: it has named none.
const char* kept_file() {
  const char* const path = std::getenv(kFile);
  return path != nullptr && std::string_view(path).starts_with(own_files()) ? path : nullptr;
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// Whether a file sets a variable of NCCL's log. NCCL takes lines NAME=VALUE from it, for variables that the
/// environment does not have.
bool sets_log(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kLevel)) return true;
  return false;
}

bool home_sets_log(const char* home) {
  return home != nullptr && sets_log(concat(home, "/.nccl.conf"));
}

/// NCCL looks for a user's file in the home of the user database (userHomeDir() in src/misc/param.cc of 2.22
/// to 2.29), later in $HOME.
bool file_at_home_sets_log() {
  if (home_sets_log(std::getenv("HOME"))) return true;
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  const int error = ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr && home_sets_log(entry.pw_dir);
}

bool user_sets_log() {
  if (is_set(kLevel) || is_set(kParts) || is_set(kFile)) return true;
  if (is_set("NCCL_CONF_FILE") ? sets_log(std::getenv("NCCL_CONF_FILE")) : file_at_home_sets_log())
    return true;
  return sets_log("/etc/nccl.conf");
}

}  // namespace

void keep_nccl_log() {
  if (user_sets_log()) return;
  const int file = memfd_create("NCCL's log", MFD_CLOEXEC);  // open until the process ends, as NCCL's own is
  if (file < 0) return;  // a kernel without it: the log of the run then says less
  const std::string path = own_files() + std::to_string(file);
  if (!std::ofstream(path)) {  // no /proc: NCCL would write all of it to stdout
    ::close(file);
    return;
  }
  constexpr int kReplace = 1;
  ::setenv(kFile, path.c_str(), kReplace);
  ::setenv(kParts, "INIT", kReplace);  // that a connection is made belongs to it, too
  ::setenv(kLevel, "INFO", kReplace);
}

std::optional<std::string> kept_nccl_log() {
  const char* const path = kept_file();
  if (path == nullptr) return std::nullopt;
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool is_of_kept_nccl_log(const std::string& variable) {
  const bool logs = variable == kLevel || variable == kParts || variable == kFile;
  return logs && kept_file() != nullptr;
}

}  // namespace megalith

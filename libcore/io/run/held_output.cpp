#include "libcore/io/run/held_output.h"

#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "libcore/io/files/file.h"
#include "libcore/io/run/run_files.h"

namespace megalith {

namespace fs = std::filesystem;

bool is_stream(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode));
}

HeldOutput::HeldOutput(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  if (is_stream(path)) {
    fd_ = open_to_append(path);
  } else if (fs::is_symlink(path, error)) {
    lock_.emplace(real_path(path));
    lock_->remove_leftovers(path);  // left by killed runs that were to replace the link
  } else {
    lock_.emplace(path);
  }
}

HeldOutput::~HeldOutput() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace megalith

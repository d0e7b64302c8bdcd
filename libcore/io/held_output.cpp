#include "libcore/io/held_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include "libcore/io/file.h"

namespace megalith {

bool is_stream(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode));
}

HeldOutput::HeldOutput(const std::string& path) {
  if (path.empty()) return;
  if (is_stream(path))
    fd_ = open_to_append(path);
  else
    lock_.emplace(path);
}

HeldOutput::~HeldOutput() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace megalith

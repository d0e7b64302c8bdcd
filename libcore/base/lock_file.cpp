#include "libcore/base/lock_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {

LockFile::LockFile(const std::string& path) {
  const std::filesystem::path output(path);
  path_ = (output.parent_path() / ("." + output.filename().string() + ".lock")).string();
  for (int tries = 1000; !try_lock(path); --tries)
    if (tries == 0) fail(ErrorKind::kIo, path_, ": cannot be locked: it is another file each time");
}

/// Whether the file that was locked still has its name: its last owner may have removed it meanwhile.
bool LockFile::try_lock(const std::string& output) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(ErrorKind::kIo, path_, ": cannot create: ", std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    fail(ErrorKind::kIo, output, ": another process is writing it; wait for its end, or give another name");
  }
  struct stat locked {
  }, named{};
  if (::fstat(fd_, &locked) == 0 && ::stat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
      locked.st_dev == named.st_dev)
    return true;
  ::close(fd_);
  return false;
}

LockFile::~LockFile() {
  ::unlink(path_.c_str());  // while it is locked: nobody else has taken it
  ::close(fd_);
}

}  // namespace megalith

#include "libcore/io/lock_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

std::string user_name(uid_t id) {
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return concat("the user ", quote(entry.pw_name));
  return concat("the user ", id);
}

}  // namespace

LockFile::LockFile(const std::string& path) {
  const std::filesystem::path output(path);
  path_ = (output.parent_path() / ("." + output.filename().string() + ".lock")).string();
  for (int tries = 1000; !try_lock(path); --tries)
    if (tries == 0) fail(ErrorKind::kIo, path_, ": cannot be locked: it is another file each time");
}

/// One that another user left behind may often be read only, which is enough to lock it (but on NFS).
int LockFile::open_file() const {
  const auto open = [&](int flags) { return ::open(path_.c_str(), flags | O_CLOEXEC, 0666); };
  int fd = open(O_RDWR | O_CREAT);
  if (fd < 0 && errno == EACCES) fd = open(O_RDONLY);
  if (fd < 0 && errno == ENOENT) fd = open(O_RDWR | O_CREAT);  // removed between the two
  return fd;
}

/// Whether the file that was locked still has its name: its last owner may have removed it meanwhile.
bool LockFile::try_lock(const std::string& output) {
  fd_ = open_file();
  if (fd_ < 0 && errno == EACCES) {
    struct stat there {};
    if (::stat(path_.c_str(), &there) == 0)
      fail(ErrorKind::kIo, path_, ": belongs to ", user_name(there.st_uid),
           " and cannot be opened: ", std::strerror(EACCES), "; it is of a run that writes ", quote(output),
           ", or that was killed: then remove it, or else give another name");
    errno = EACCES;
  }
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

#include "libcore/io/run/lock_file.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/file_calls.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Maps all names of one output to the same path, so that two runs cannot lock it under two names: "out/"
/// becomes "out", and a link to a folder becomes that folder.
fs::path real_output(const std::string& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (!error && fs::is_directory(real, error)) return real;
  return (fs::path(path) / "").parent_path();
}

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "this machine";
}

std::string user_name(uid_t id) {
  std::array<char, 4096> buffer{};
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return concat("the user ", quote(entry.pw_name));
  return concat("the user ", id);
}

/// Whether `name` is `output` itself, or a file of the dataset whose prefix is `output`.
bool is_of(std::string_view name, std::string_view output) {
  if (!name.starts_with(output)) return false;
  name.remove_prefix(output.size());
  return name.empty() || name == ".bin" || name == ".idx" || name == ".json";
}

/// Removes the temporary files in `folder` of all outputs for which `ours(name)` is true. The caller must be
/// the only writer of these outputs.
template <class Ours>
void remove_left_by_others(const fs::path& folder, const Ours& ours) {
  std::error_code error;
  std::vector<fs::path> found;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const auto temporary = parse_temporary_name(entry->path().filename().string());
    if (temporary && ours(temporary->output)) found.push_back(entry->path());
  }
  for (const fs::path& path : found) fs::remove_all(path, error);  // a file that cannot be removed stays
}

}  // namespace

LockFile::LockFile(const std::string& path) {
  const fs::path output = real_output(path);
  path_ = (output.parent_path() / ("." + output.filename().string() + ".lock")).string();
  for (int tries = 1000; !try_lock(path); --tries)
    if (tries == 0) fail(ErrorKind::kIo, path_, ": cannot be locked: it is replaced again and again");
  write_owner();
  held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;  // already held, if the file system has locks
  remove_leftovers(path);
}

/// Opens the lock file, for reading only if it cannot be written: it may belong to another user, and reading
/// is enough to lock it (except on NFS).
int LockFile::open_file() const {
  constexpr int kPlain = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;  // a link or FIFO is refused
  const auto open = [&](int flags) { return ::open(path_.c_str(), flags | kPlain, 0666); };
  int fd = open(O_RDWR | O_CREAT);
  if (fd < 0 && errno == EACCES) fd = open(O_RDONLY);
  if (fd < 0 && errno == ENOENT) fd = open(O_RDWR | O_CREAT);  // another process removed the file in between
  return fd;
}

/// Says why the lock file could not be made in the folder of the output; errno is that of open().
void LockFile::refuse_folder(const std::string& output) const {
  const int error = errno;
  const std::string folder = fs::path(path_).parent_path().string();
  if (error == EACCES || error == EPERM || error == EROFS)
    fail(ErrorKind::kIo, folder, ": cannot write to this folder (", std::strerror(error),
         "), which is to hold ", quote(output), "; make it writable, or give another name");
  fail(ErrorKind::kIo, path_, ": cannot create: ", std::strerror(error));
}

/// Opens and locks the file. Returns whether the locked file still has its name: its last owner may have
/// removed it meanwhile, and a lock on a nameless file would exclude no one.
bool LockFile::try_lock(const std::string& output) {
  fd_ = open_file();
  if (fd_ < 0 && errno == EACCES) {
    struct stat there {};
    if (::stat(path_.c_str(), &there) == 0)
      fail(ErrorKind::kIo, path_, ": belongs to ", user_name(there.st_uid),
           " and cannot be opened: ", std::strerror(EACCES), "; it belongs to a run that writes ",
           quote(output), ", or that was killed: remove it in that case, otherwise give another name");
    errno = EACCES;
  }
  if (fd_ < 0) refuse_folder(output);
  struct stat locked {
  }, named{};
  if (::fstat(fd_, &locked) != 0 || !S_ISREG(locked.st_mode)) {
    ::close(fd_);
    fail(ErrorKind::kIo, path_, ": is not a regular file; remove it, or give another name");
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    const std::string owner = read_owner();
    ::close(fd_);
    fail(ErrorKind::kComm, output, ": another process is writing it", owner,
         "; wait until it ends, or give another name");
  }
  if (::lstat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino && locked.st_dev == named.st_dev)
    return true;
  ::close(fd_);
  return false;
}

/// Writes this process's number and machine into the lock file. If the process may only read the file, the
/// text of the last owner stays; therefore read_owner() checks whether that process is alive.
void LockFile::write_owner() const {
  struct stat file {};
  if (::fstat(fd_, &file) != 0 || file.st_nlink != 1) return;  // a file with a second name may be somebody's
  const std::string owner = concat(::getpid(), " ", machine_name(), "\n");
  if (::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, owner.data(), owner.size(), 0) < 0)
    // A full disk is not an error: the lock holds even if its owner is not recorded.
    return;
}

/// Names the process that holds the lock, for a message: ": process NUMBER on MACHINE"; empty if it is
/// unknown.
std::string LockFile::read_owner() const {
  std::array<char, 256> text{};
  ssize_t size = 0;
  for (int tries = 50; size <= 0 && tries > 0; --tries) {  // the owner writes a moment after it locks
    size = ::pread(fd_, text.data(), text.size(), 0);
    if (size <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (size <= 0) return {};
  const std::vector<std::string> words =
      split(trim(std::string_view(text.data(), static_cast<size_t>(size))), ' ');
  const auto process = words.size() == 2 ? parse_int(words[0]) : std::nullopt;
  if (!process || *process <= 0) return {};
  const bool gone =
      words[1] == machine_name() && ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH;
  return gone ? std::string() : concat(": process ", *process, " on ", words[1]);
}

LockFile::~LockFile() {
  ::unlink(path_.c_str());  // before the lock is released: no other process can hold it
  ::close(fd_);
}

void LockFile::check() const {
  if (held_ && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail(ErrorKind::kComm, path_, ": another process has taken this lock", read_owner(),
         "; it does the work of this one");
}

void LockFile::remove_leftovers(const std::string& output) const {
  if (!held_) return;
  const fs::path real = real_output(output);
  const std::string own = real.filename().string();
  remove_left_by_others(parent_or_here(real), [&](std::string_view name) { return is_of(name, own); });
}

void LockFile::remove_leftovers_in(const std::string& folder, std::string_view begin) const {
  if (held_) remove_left_by_others(folder, [&](std::string_view name) { return name.starts_with(begin); });
}

}  // namespace megalith

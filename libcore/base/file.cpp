#include "libcore/base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_errno(const char* doing, const std::string& path) {
  const int reason = errno;
  const bool absent = reason == ENOENT || reason == ENOTDIR;
  fail(absent ? ErrorKind::kNoInput : ErrorKind::kIo, path, ": cannot ", doing, ": ", std::strerror(reason));
}

[[noreturn]] void fail_write(const char* doing, const std::string& path) {
  fail(ErrorKind::kIo, path, ": cannot ", doing, ": ", std::strerror(errno));
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const fs::path p(path);
  return (p.parent_path() / concat(".", p.filename().string(), ".tmp-", getpid(), "-", counter++)).string();
}

void write_all(int fd, const void* data, size_t bytes, const std::string& path) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, at, std::min(bytes, kWritePiece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write("write", path);
    at += n;
    bytes -= static_cast<size_t>(n);
  }
}

fs::path parent_or_here(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

/// Through which a nameless file gets a name.
std::string link_of(int fd) {
  return concat("/proc/self/fd/", fd);
}

/// A file in `folder` that vanishes with the process, even a killed one, until it is named; -1 where the file
/// system has no such files or they could not be named.
int open_nameless(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(link_of(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

void sync_path(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) fail_write("open for syncing", path.string());
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL;  // EINVAL: the file system has no fsync here
  const int reason = errno;
  const bool closed = ::close(fd) == 0;
  if (!synced) errno = reason;
  if (!synced || !closed) fail_write("sync", path.string());
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("open", path_);
  struct stat info {};
  const bool ok = ::fstat(fd, &info) == 0;
  if (!ok || !S_ISREG(info.st_mode)) {
    ::close(fd);
    if (!ok) fail_errno("inspect", path_);
    fail(ErrorKind::kNoInput, path_, ": is not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  void* map = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  const int reason = errno;
  ::close(fd);
  errno = reason;
  if (map == MAP_FAILED) fail_errno("map", path_);
  data_ = static_cast<const std::byte*>(map);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::forget(size_t offset, size_t bytes) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page, end = std::min(offset + bytes, size_);
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(temporary_name(path_)) {
  fd_ = open_nameless(parent_or_here(path_));
  nameless_ = fd_ >= 0;
  if (!nameless_) fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_write("create", temporary_);
  buffer_.reserve(kWritePiece);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!nameless_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  size_ += bytes;
  if (buffer_.size() + bytes > kWritePiece) flush();
  if (bytes >= kWritePiece)
    write_all(fd_, data, bytes, path_);
  else
    buffer_.append(static_cast<const char*>(data), bytes);
}

void AtomicFile::write_at(uint64_t offset, const void* data, size_t bytes) {
  flush();
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd_, at, std::min(bytes, kWritePiece), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write("write", path_);
    at += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::flush() {
  if (buffer_.empty()) return;
  write_all(fd_, buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (::fsync(fd_) != 0 && errno != EINVAL) fail_write("sync", path_);
  if (nameless_ &&
      ::linkat(AT_FDCWD, link_of(fd_).c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
    fail_write("name", temporary_);
  nameless_ = false;
  if (::close(std::exchange(fd_, -1)) != 0) {
    ::unlink(temporary_.c_str());
    fail_write("close", path_);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    errno = reason;
    fail_write("rename into place", path_);
  }
  sync_directory(parent_or_here(path_));
}

AtomicDirectory::AtomicDirectory(fs::path target) : target_(std::move(target)) {
  if (target_.filename().empty()) target_ = target_.parent_path();  // "out/" means "out"
  temporary_ = temporary_name(target_.string());
  make_directories(parent_or_here(target_));
  if (::mkdir(temporary_.c_str(), 0777) != 0) fail_write("create folder", temporary_.string());
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

void AtomicDirectory::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(temporary_))
    sync_path(entry.path(), entry.is_directory() ? O_DIRECTORY : 0);
  sync_path(temporary_, O_DIRECTORY);
  rename_directory(temporary_, target_);
  committed_ = true;
}

std::string read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("open", path);
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int reason = errno;
      ::close(fd);
      errno = reason;
      if (n < 0) fail(ErrorKind::kIo, path, ": cannot read: ", std::strerror(reason));
      return out;
    }
    out.append(buffer, static_cast<size_t>(n));
  }
}

void write_file(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

uint64_t file_size(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail_errno("inspect", path);
  return static_cast<uint64_t>(info.st_size);
}

void rename_directory(const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  const auto sync_parent = [&] { sync_directory(parent_or_here(to)); };
  if (::rename(from.c_str(), to.c_str()) == 0) return sync_parent();  // nothing there, or an empty folder
  if (errno != EEXIST && errno != ENOTEMPTY) fail_write("rename into place", to.string());
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    sync_parent();
    fs::remove_all(from, ignored);
    return;
  }
  const fs::path aside = temporary_name(to.string());
  if (::rename(to.c_str(), aside.c_str()) != 0) fail_write("move aside", to.string());
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int reason = errno;
    ::rename(aside.c_str(), to.c_str());
    errno = reason;
    fail_write("rename into place", to.string());
  }
  sync_parent();
  fs::remove_all(aside, ignored);
}

void make_directories(const fs::path& folder) {
  std::error_code reason;
  fs::create_directories(folder, reason);
  if (reason) fail(ErrorKind::kIo, folder.string(), ": cannot create folder: ", reason.message());
}

void sync_directory(const fs::path& folder) {
  sync_path(folder, O_DIRECTORY);
}

}  // namespace megalith

#include "libcore/io/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/direct_writer.h"
#include "libcore/io/file_calls.h"
#include "libcore/io/pending_files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_errno(const char* doing, const std::string& path) {
  const int reason = errno;
  const bool absent = reason == ENOENT || reason == ENOTDIR;
  fail(absent ? ErrorKind::kNoInput : ErrorKind::kIo, path, ": cannot ", doing, ": ", std::strerror(reason));
}

/// Of a file that is written back early, what the system is asked for at once.
constexpr uint64_t kWriteBackPiece = uint64_t{8} << 20;

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

/// Locks the file, cuts it to `size` bytes and goes to its end.
void go_on_behind(int fd, uint64_t size, const std::string& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail(ErrorKind::kIo, path, ": another process is writing it");
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_write("inspect", path);
  if (static_cast<uint64_t>(info.st_size) < size)
    fail(ErrorKind::kData, path, ": has ", info.st_size, " bytes, wanted at least ", size, "; it was cut");
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0 || ::lseek(fd, 0, SEEK_END) < 0)
    fail_write("truncate", path);
}

[[noreturn]] void fail_cut(const std::string& path, uint64_t end, uint64_t size) {
  fail(ErrorKind::kData, path, ": ends at byte ", end, ", it had ", size,
       " when it was opened; it was changed meanwhile");
}

/// Bytes [offset, offset + bytes) of a file, and the descriptor that gets them at its end.
struct KernelCopy {
  const ReadableFile& source;
  uint64_t offset, bytes;
  int out;
};

/// Whether the error says that this call cannot copy between these files, rather than that copying failed.
bool cannot_copy(int error) {
  return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

/// What the first of the kernel's ways that can do it has copied, at most 64 MiB at once: copy_file_range,
/// which shares the blocks where both files' file system can, then sendfile, which also goes from one file
/// system to another. Nothing: neither can. 0: the source ended.
std::optional<size_t> copy_some(const KernelCopy& copy, const std::string& out_path) {
  const size_t most = std::min<uint64_t>(copy.bytes, uint64_t{1} << 26);
  for (const bool by_range : {true, false}) {
    auto from = static_cast<off_t>(copy.offset);
    const ssize_t n = by_range
                          ? ::copy_file_range(copy.source.descriptor(), &from, copy.out, nullptr, most, 0)
                          : ::sendfile(copy.out, copy.source.descriptor(), &from, most);
    if (n > 0) return static_cast<size_t>(n);
    if (n < 0 && errno == EINTR) return copy_some(copy, out_path);
    if (n < 0 && !cannot_copy(errno))
      fail(ErrorKind::kIo, out_path, ": cannot copy ", copy.source.path(), ": ", std::strerror(errno));
    if (n == 0 && !by_range) return 0;  // some file systems say 0 to copy_file_range where they cannot copy
  }
  return std::nullopt;
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
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL;  // as in sync_to_disk()
  const int reason = errno;
  const bool closed = ::close(fd) == 0;
  if (!synced) errno = reason;
  if (!synced || !closed) fail_write("sync", path.string());
}

}  // namespace

fs::path parent_or_here(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

void fail_write(const char* doing, const std::string& path) {
  fail(ErrorKind::kIo, path, ": cannot ", doing, ": ", std::strerror(errno));
}

void sync_to_disk(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL) fail_write("sync", path);  // EINVAL: no fsync on this file system
}

std::string link_of(int fd) {
  return concat("/proc/self/fd/", fd);
}

void write_at_place(int fd, const BytesToWrite& wish, const std::string& path) {
  const char* const data = static_cast<const char*>(wish.data);
  for (size_t done = 0; done < wish.bytes;) {
    const ssize_t n = ::pwrite(fd, data + done, std::min(wish.bytes - done, kWritePiece),
                               static_cast<off_t>(wish.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write("write", path);
    done += static_cast<size_t>(n);
  }
}

size_t read_at_place(int fd, const BytesToRead& wish, const std::string& path) {
  size_t done = 0;
  while (done < wish.bytes) {
    const ssize_t n = ::pread(fd, static_cast<char*>(wish.out) + done, wish.bytes - done,
                              static_cast<off_t>(wish.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::kIo, path, ": cannot read: ", std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

MappedFile::MappedFile(std::string path, MappedPages pages) : path_(std::move(path)) {
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
  // Only wishes: a system without large pages does not know the one, an older one not the other.
  if (map && pages == MappedPages::kSmall) ::madvise(map, size_, MADV_NOHUGEPAGE);
  if (map && pages == MappedPages::kAll) ::madvise(map, size_, MADV_POPULATE_READ);
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

ReadableFile::ReadableFile(std::string path, PendingFiles* writing)
    : path_(std::move(path)), writing_(writing) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) fail_errno("open", path_);
  struct stat info {};
  const bool ok = ::fstat(fd_, &info) == 0;
  if (!ok || !S_ISREG(info.st_mode)) {
    const int reason = errno;
    ::close(fd_);
    errno = reason;
    if (!ok) fail_errno("inspect", path_);
    fail(ErrorKind::kNoInput, path_, ": is not a regular file");
  }
  size_ = static_cast<uint64_t>(info.st_size);
  if (writing_ && (number_ = writing_->find(fd_)) == PendingFiles::kNone) writing_ = nullptr;
}

ReadableFile::~ReadableFile() {
  ::close(fd_);
}

void ReadableFile::read_at(uint64_t offset, void* out, size_t bytes) const {
  while (writing_ && bytes > 0 && offset + bytes <= size_) {
    const auto [copied, in_file] = writing_->serve(number_, offset, out, bytes);
    if (in_file > 0 && read_at_place(fd_, {offset, out, in_file}, path_) < in_file)
      fail_cut(path_, offset, size_);
    offset += copied + in_file;
    out = static_cast<char*>(out) + copied + in_file;
    bytes -= copied + in_file;
  }
  const size_t done = read_at_place(fd_, {offset, out, bytes}, path_);
  if (done < bytes) fail_cut(path_, offset + done, size_);
}

void ReadableFile::stream(const std::function<void(std::span<const std::byte>)>& take) const {
  std::vector<std::byte> block(size_t{1} << 16);
  for (uint64_t at = 0; at < size_; at += block.size()) {
    const size_t n = std::min<uint64_t>(block.size(), size_ - at);
    read_at(at, block.data(), n);
    take({block.data(), n});
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(temporary_name(path_)) {
  fd_ = open_nameless(parent_or_here(path_));
  nameless_ = fd_ >= 0;
  if (!nameless_) fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_write("create", temporary_);
  buffer_.reserve(kWritePiece);
}

AtomicFile::AtomicFile(std::string path, uint64_t kept)
    : path_(std::move(path)), temporary_(partial_name(path_)), kept_(true), size_(kept) {
  if (takes_back(path_, kept) && ::rename(path_.c_str(), temporary_.c_str()) != 0)
    fail_write("rename", path_);
  // A link of that name was planted, and a pipe would be waited for.
  fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd_ < 0) fail_write("create", temporary_);
  try {
    go_on_behind(fd_, kept, temporary_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
  buffer_.reserve(kWritePiece);
}

bool AtomicFile::takes_back(const std::string& path, uint64_t kept) {
  return kept > 0 && !file_exists(partial_name(path)) && file_exists(path) && file_size(path) == kept;
}

AtomicFile::~AtomicFile() {
  direct_.reset();
  if (fd_ < 0) return;
  ::close(fd_);
  if (!nameless_ && !kept_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  if (stream_ == Stream::kAroundCache && !direct_ && size_ + bytes >= direct_from_) begin_stream();
  size_ += bytes;
  if (direct_) return direct_->append(data, bytes);
  const size_t most = stream_ == Stream::kAroundCache && direct_from_ <= kWaiting ? kWaiting : kWritePiece;
  if (buffer_.size() + bytes > most) flush();
  if (bytes >= most)
    write_all(fd_, data, bytes, path_);
  else
    buffer_.append(static_cast<const char*>(data), bytes);
  if (stream_ == Stream::kWriteBack) start_write_back(kWriteBackPiece);
}

/// What is in buffer_ has not gone through the page cache, and will not.
void AtomicFile::begin_stream() {
  direct_ = DirectWriter::open(fd_, path_, size_ - buffer_.size());
  if (!direct_) {
    stream_ = Stream::kWriteBack;
    return;
  }
  direct_->append(buffer_.data(), buffer_.size());
  buffer_ = std::string();
}

/// The descriptor is at the end of the file again.
void AtomicFile::leave_stream() {
  flush();
  if (direct_ && ::lseek(fd_, static_cast<off_t>(size_), SEEK_SET) < 0) fail_write("go to the end", path_);
  direct_.reset();
}

void AtomicFile::write_at(uint64_t offset, const void* data, size_t bytes) {
  if (direct_) return direct_->write_at(offset, data, bytes);
  flush();
  write_at_place(fd_, {offset, data, bytes}, path_);
}

void AtomicFile::append(const ReadableFile& source, uint64_t offset, uint64_t bytes,
                        const std::function<void(uint64_t)>& progress) {
  leave_stream();
  size_ += bytes;
  std::string buffer;
  for (uint64_t done = 0; done < bytes;) {
    const KernelCopy copy{source, offset + done, bytes - done, fd_};
    if (const std::optional<size_t> n = copy_some(copy, path_)) {
      if (*n == 0) fail_cut(source.path(), copy.offset, source.size());
      done += *n;
    } else {
      buffer.resize(std::min<uint64_t>(copy.bytes, kWritePiece));
      source.read_at(copy.offset, buffer.data(), buffer.size());
      write_all(fd_, buffer.data(), buffer.size(), path_);
      done += buffer.size();
    }
    if (progress) progress(done);
  }
}

void AtomicFile::read_back(uint64_t offset, void* out, size_t bytes) {
  flush();
  if (read_at_place(fd_, {offset, out, bytes}, path_) < bytes)
    fail(ErrorKind::kIo, path_, ": holds less than was written to it");
}

void AtomicFile::flush() {
  if (direct_) return direct_->flush();
  if (buffer_.empty()) return;
  write_all(fd_, buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void AtomicFile::truncate(uint64_t size) {
  leave_stream();
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0 || ::lseek(fd_, 0, SEEK_END) < 0)
    fail_write("truncate", path_);
  size_ = size;
  written_back_ = std::min(written_back_, size);
}

void AtomicFile::sync() {
  flush();
  sync_to_disk(fd_, path_);
}

void AtomicFile::start_write_back(uint64_t least) {
  const uint64_t there = size_ - buffer_.size();
  if (there - written_back_ < least) return;
  // A file system that cannot is no failure: commit() waits for everything.
  ::sync_file_range(fd_, static_cast<off_t>(written_back_), static_cast<off_t>(there - written_back_),
                    SYNC_FILE_RANGE_WRITE);
  written_back_ = there;
}

std::string AtomicFile::open_path() const {
  return link_of(fd_);
}

void AtomicFile::begin_end() {
  if (direct_) return direct_->begin_end();
  flush();
  start_write_back(1);
}

void AtomicFile::end() {
  if (!direct_) return sync();
  direct_->end();
  direct_.reset();
}

void AtomicFile::commit() {
  end();
  place();
  sync_directory(parent_or_here(path_));
}

void AtomicFile::place() {
  if (nameless_ &&
      ::linkat(AT_FDCWD, link_of(fd_).c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
    fail_write("name", temporary_);
  nameless_ = false;
  const char* failed = nullptr;
  if (::close(std::exchange(fd_, -1)) != 0)
    failed = "close";
  else if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    failed = "rename into place";
  if (failed) {
    const int reason = errno;
    if (!kept_) ::unlink(temporary_.c_str());
    errno = reason;
    fail_write(failed, path_);
  }
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

void AtomicDirectory::sync() const {
  for (const auto& entry : fs::recursive_directory_iterator(temporary_))
    sync_path(entry.path(), entry.is_directory() ? O_DIRECTORY : 0);
  sync_path(temporary_, O_DIRECTORY);
}

void AtomicDirectory::commit() {
  sync();
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

#include "libcore/io/files/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/refusals.h"
#include "libcore/io/files/file_calls.h"
#include "libcore/io/files/pending_files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_errno(const char* doing, const std::string& path) {
  const int reason = errno;
  if (reason == ENOMEM)
    throw NoMemory(ErrorKind::kSystem, concat(path, ": cannot ", doing, ": ", out_of_memory().what()));
  const bool absent = reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == ENAMETOOLONG;
  fail(absent ? ErrorKind::kNoInput : ErrorKind::kIo, path, ": cannot ", doing, ": ", std::strerror(reason));
}

/// Opens a regular file and returns its descriptor and size. Fails at once for any other kind of file, so
/// that a FIFO without a writer cannot hang the program.
std::pair<int, uint64_t> open_regular(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail_errno("open", path);
  struct stat info {};
  const bool ok = ::fstat(fd, &info) == 0;
  if (ok && S_ISREG(info.st_mode)) return {fd, static_cast<uint64_t>(info.st_size)};
  const int reason = errno;
  ::close(fd);
  errno = reason;
  if (!ok) fail_errno("inspect", path);
  fail(ErrorKind::kNoInput, path, ": is not a regular file");
}

/// Reads `fd` to its end and closes it.
std::string read_and_close(int fd, const std::string& path, uint64_t max_bytes) {
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    const bool too_much = n > 0 && out.size() + static_cast<size_t>(n) > max_bytes;
    if (n <= 0 || too_much) {
      const int reason = errno;
      ::close(fd);
      if (n < 0) fail(ErrorKind::kIo, path, ": cannot read: ", std::strerror(reason));
      if (too_much)
        fail(ErrorKind::kData, path, ": has more than ", max_bytes >> 20, " MiB, too many for such a file");
      return out;
    }
    out.append(buffer, static_cast<size_t>(n));
  }
}

/// Reads a regular file of `size` bytes to its end and closes it. A file that is too large is not read.
std::string read_whole(int fd, const std::string& path, uint64_t size) {
  if (size > kMostWhole) ::close(fd);
  require_whole(path, size);
  return read_and_close(fd, path, kMostWhole);
}

/// If `path` is a device or FIFO, opens it for writing and returns its descriptor; throws kIo if `kind` does
/// not allow it. Returns -1 if `path` is a regular file or does not exist.
int open_stream(const std::string& path, OutputKind kind) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return -1;
  if (const std::string what = kind_that_is_not(kind, info.st_mode); !what.empty())
    fail(ErrorKind::kIo, path, ": is ", what, ", which would be replaced; give another name");
  return open_to_append(path);
}

/// Locks the file, truncates it to `size` bytes, since any bytes after them may be wrong, and seeks to its
/// end.
void resume_after(int fd, uint64_t size, const std::string& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail(ErrorKind::kIo, path, ": another process is writing it");
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_write("inspect", path);
  if (static_cast<uint64_t>(info.st_size) < size)
    fail(ErrorKind::kData, path, ": has ", info.st_size, " bytes, wanted at least ", size,
         "; it was truncated");
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0 || ::lseek(fd, 0, SEEK_END) < 0)
    fail_write("truncate", path);
}

/// Creates a nameless file in `folder`, which leaves nothing behind if the process is killed. Returns -1 if
/// the system does not support nameless files or could not name one later.
int open_nameless(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(link_of(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

/// Calls `make` with one temporary name of `path` after another, until it makes something there or fails for
/// another reason than that the name is taken. Returns the name. Processes in containers often have the same
/// number, so one that was killed, or runs elsewhere, may have taken it.
template <class Make>
std::string make_temporary(const std::string& path, const char* doing, const Make& make) {
  for (;;) {
    std::string name = temporary_name(path);
    if (make(name)) return name;
    if (errno != EEXIST) fail_write(doing, name);
  }
}

void sync_path(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) fail_write("open for syncing", path.string());
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL;  // EINVAL: no fsync here, see sync_to_disk()
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

MappedFile::MappedFile(std::string path, MappedPages pages) : path_(std::move(path)) {
  const auto [fd, bytes] = open_regular(path_);
  size_ = static_cast<size_t>(bytes);
  void* map = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  const int reason = errno;
  ::close(fd);
  errno = reason;
  if (map == MAP_FAILED) fail_errno("map", path_);
  // Both calls are only hints, so errors are ignored: some systems have no large pages, and old ones do not
  // support MADV_POPULATE_READ.
  if (map && pages == MappedPages::kSmall) ::madvise(map, size_, MADV_NOHUGEPAGE);
  if (map && pages == MappedPages::kAll) ::madvise(map, size_, MADV_POPULATE_READ);
  data_ = static_cast<const std::byte*>(map);
  range_ = MappedRange(map, size_, path_);
}

MappedFile::~MappedFile() {
  range_ = {};
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      range_(std::move(other.range_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(range_, other.range_);
  return *this;
}

void MappedFile::forget(size_t offset, size_t bytes) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page, end = std::min(offset + bytes, size_);
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

ReadableFile::ReadableFile(std::string path, PendingFiles* writing)
    : path_(std::move(path)), writing_(writing) {
  std::tie(fd_, size_) = open_regular(path_);
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

AtomicFile::Begun AtomicFile::begin(std::string path, OutputKind kind) {
  if (const int fd = open_stream(path, kind); fd >= 0)
    return {.path = path, .temporary = path, .fd = fd, .stream = true};
  Begun file{.fd = open_nameless(parent_or_here(path))};
  file.nameless = file.fd >= 0;
  if (!file.nameless)
    file.temporary = make_temporary(path, "create", [&](const std::string& name) {
      file.fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      return file.fd >= 0;
    });
  file.path = std::move(path);
  return file;
}

AtomicFile::Begun AtomicFile::resume(std::string path, uint64_t size) {
  open_stream(path, OutputKind::kFile);  // throws if `path` is a device or FIFO
  Begun file{.temporary = partial_name(path), .kept = true, .size = size};
  if (takes_back(path, size) && ::rename(path.c_str(), file.temporary.c_str()) != 0)
    fail_write("rename", path);
  // O_NOFOLLOW: a link with that name can only have been planted. O_NONBLOCK: opening a pipe would block.
  file.fd = ::open(file.temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (file.fd < 0) fail_write("create", file.temporary);
  try {
    resume_after(file.fd, size, file.temporary);
  } catch (...) {
    ::close(file.fd);
    throw;
  }
  file.path = std::move(path);
  return file;
}

AtomicFile::AtomicFile(Begun file)
    : FileWriter(file.fd, std::move(file.path), file.size),
      temporary_(std::move(file.temporary)),
      nameless_(file.nameless),
      kept_(file.kept || file.stream) {}

bool AtomicFile::takes_back(const std::string& path, uint64_t kept) {
  return kept > 0 && !file_exists(partial_name(path)) && file_exists(path) && file_size(path) == kept;
}

AtomicFile::~AtomicFile() {
  if (!published_ && !nameless_ && !kept_) ::unlink(temporary_.c_str());
}

void AtomicFile::commit() {
  finish_sync();
  publish();
  sync_directory(parent_or_here(path()));
}

void AtomicFile::publish() {
  if (nameless_)
    temporary_ = make_temporary(path(), "name", [&](const std::string& name) {
      return ::linkat(AT_FDCWD, open_path().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
  nameless_ = false;
  if (!close()) fail_write("close", path());
  if (temporary_ != path() && ::rename(temporary_.c_str(), path().c_str()) != 0)
    fail_write("rename into place", path());
  published_ = true;
}

AtomicDirectory::AtomicDirectory(fs::path target) : target_(std::move(target)) {
  if (target_.filename().empty()) target_ = target_.parent_path();  // "out/" means "out"
  make_directories(parent_or_here(target_));
  temporary_ = make_temporary(target_.string(), "create folder",
                              [](const std::string& name) { return ::mkdir(name.c_str(), 0777) == 0; });
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

void require_whole(const std::string& path, uint64_t size) {
  if (size > kMostWhole)
    fail(ErrorKind::kData, path, ": has ", size, " bytes, too many for such a file; wanted at most ",
         kMostWhole, " (", kMostWhole >> 20, " MiB)");
}

std::string read_file(const std::string& path) {
  constexpr uint64_t kMaxOfStream = uint64_t{1} << 28;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("open", path);
  struct stat info {};
  const mode_t mode = ::fstat(fd, &info) == 0 ? info.st_mode : 0;
  if (S_ISREG(mode)) return read_whole(fd, path, static_cast<uint64_t>(info.st_size));
  if (!S_ISDIR(mode)) return read_and_close(fd, path, kMaxOfStream);
  ::close(fd);
  fail(ErrorKind::kNoInput, path, ": is a folder, wanted a file");
}

std::string read_own_file(const std::string& path) {
  const auto [fd, size] = open_regular(path);
  return read_whole(fd, path, size);
}

std::string kind_that_is_not(OutputKind kind, uint32_t mode) {
  const bool stream = kind == OutputKind::kStream;
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISBLK(mode)) return "a disk";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return stream ? "" : "a device";
  if (S_ISFIFO(mode)) return stream ? "" : "a FIFO";
  return "";
}

int open_to_append(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
  const int fd = ::open(path.c_str(), kFlags | O_CREAT | O_NONBLOCK, 0666);
  if (fd < 0 && errno == ENXIO) fail(ErrorKind::kIo, path, ": no process reads from it");
  if (fd < 0) fail_write("open for appending", path);
  if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0) ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  return fd;
}

void write_file(const std::string& path, std::string_view contents, OutputKind kind) {
  AtomicFile file(path, kind);
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
  if (::rename(from.c_str(), to.c_str()) == 0) return sync_parent();  // `to` was absent or empty
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
  std::error_code reason, ignored;
  std::vector<fs::path> parents;  // folders that get a new entry
  fs::path at = (folder / "").parent_path();
  for (; !at.empty() && !fs::exists(at, ignored); at = at.parent_path())
    parents.push_back(parent_or_here(at));
  fs::create_directories(folder, reason);
  if (reason) fail(ErrorKind::kIo, folder.string(), ": cannot create folder: ", reason.message());
  for (const fs::path& parent : parents) sync_directory(parent);
}

void sync_file(const std::string& path) {
  sync_path(path, 0);
}

void sync_directory(const fs::path& folder) {
  sync_path(folder, O_DIRECTORY);
}

void remove_file(const std::string& path) {
  std::error_code error;
  if (fs::remove(path, error)) sync_directory(parent_or_here(path));
  if (error) fail(ErrorKind::kIo, path, ": cannot be removed: ", error.message());
}

}  // namespace megalith

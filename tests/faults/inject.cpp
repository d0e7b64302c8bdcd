// A library for LD_PRELOAD. It makes calls fail by which a program changes the file system, or kills the
// program at such a call. It does not depend on Megalith.
//   MEGALITH_FAULT=MODE:NUMBER  acts on the call of this number, from 1: "kill" (a write is half done first),
//                               "short" (a write takes half of its bytes; other calls work as usual), or the
//                               errno with which it fails
//   MEGALITH_FAULT_COUNT=FILE   a program writes the number of its calls there when it ends
//   MEGALITH_FAULT_LOG=FILE     gets a line for each such call that worked (see note())
// These calls are counted: open for writing, write and close of a file opened so, pwrite, copy_file_range,
// sendfile, fsync, ftruncate, fallocate, rename, renameat2, linkat, mkdir, unlink, unlinkat, remove.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

enum class Mode { kNone, kKill, kShort, kFail };
struct Wish {
  Mode mode = Mode::kNone;
  int number = 0, error = 0;
};

Wish wish_of(const char* text) {
  const char* const colon = text ? std::strchr(text, ':') : nullptr;
  if (!colon) return {};
  Wish wish{.number = std::atoi(colon + 1)};
  if (std::strncmp(text, "kill", 4) == 0)
    wish.mode = Mode::kKill;
  else if (std::strncmp(text, "short", 5) == 0)
    wish.mode = Mode::kShort;
  else
    wish.mode = Mode::kFail, wish.error = std::atoi(text);
  return wish;
}

const Wish& wish() {
  static const Wish kOnly = wish_of(std::getenv("MEGALITH_FAULT"));
  return kOnly;
}

/// Appends the line "WHAT\tFILE\tPATH\tOTHER" to the log. FILE is the file's inode number; PATH and OTHER are
/// paths as the program gave them.
void note(const char* what, ino_t file, const char* path = "", const char* other = "") {
  static const char* const kLog = std::getenv("MEGALITH_FAULT_LOG");
  if (!kLog) return;
  static const int kFd =
      static_cast<int>(syscall(SYS_open, kLog, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  char line[9000];
  const int size = std::snprintf(line, sizeof line, "%s\t%llu\t%s\t%s\n", what,
                                 static_cast<unsigned long long>(file), path, other);
  if (size > 0) syscall(SYS_write, kFd, line, std::min(static_cast<size_t>(size), sizeof line));
}
ino_t file_of(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}
ino_t file_of(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? info.st_ino : 0;
}
int noted(const char* what, int rc, const char* path, const char* other = "") {
  const int error = errno;
  if (rc == 0) note(what, file_of(other[0] ? other : path), path, other);
  errno = error;
  return rc;
}

/// Whether the descriptor is of shm_open(): clang's OpenMP keeps such a file, and no disk is full for it.
bool is_shared_memory(int fd) {
  char link[64], path[64] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && std::strncmp(path, "/dev/shm/", 9) == 0;
}

std::atomic<int> calls = 0;
std::array<std::atomic<bool>, 4096> written{};  // by descriptor: whether it was opened for writing

std::atomic<bool>* of(int fd) {
  return fd > 2 && static_cast<size_t>(fd) < written.size() ? &written[static_cast<size_t>(fd)] : nullptr;
}

bool hit() {
  return ++calls == wish().number && wish().mode != Mode::kNone;
}

/// For calls that are done either entirely or not at all: counts the call and returns whether it must fail.
/// Does not return if the fault is a kill.
bool fails() {
  if (!hit() || wish().mode == Mode::kShort) return false;
  if (wish().mode == Mode::kKill) std::raise(SIGKILL);
  errno = wish().error;
  return true;
}

/// For calls that may transfer only some of their bytes. `next` makes the real call for a given number of
/// bytes.
template <class Next>
ssize_t transfer(int to, size_t bytes, const Next& next) {
  if (!hit()) {
    const ssize_t done = next(bytes);
    if (done > 0) note("write", file_of(to));
    return done;
  }
  if (wish().mode == Mode::kFail) {
    errno = wish().error;
    return -1;
  }
  const ssize_t done = next(std::max<size_t>(bytes / 2, 1));
  if (wish().mode == Mode::kKill) std::raise(SIGKILL);
  return done;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_nameless(int flags) {
  return (flags & O_TMPFILE) == O_TMPFILE;
}

int open_as(const char* name, const char* path, int flags, mode_t mode) {
  const bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (writes && fails()) return -1;
  const int fd = real<int(const char*, int, ...)>(name)(path, flags, mode);
  if (auto* const known = of(fd)) *known = writes;
  if (fd >= 0 && writes) note((flags & O_CREAT) != 0 ? "create" : "open", file_of(fd), path);
  return fd;
}

struct Count {
  ~Count() {
    const char* const path = std::getenv("MEGALITH_FAULT_COUNT");
    if (!path) return;
    if (std::FILE* const file = std::fopen(path, "w")) {
      std::fprintf(file, "%d\n", calls.load());
      std::fclose(file);
    }
  }
} count;

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): a type is an argument of va_arg
#define MODE_OF(flags)                                                                              \
  va_list arguments;                                                                                \
  va_start(arguments, flags);                                                                       \
  const mode_t mode = (flags & O_CREAT) != 0 || is_nameless(flags) ? va_arg(arguments, mode_t) : 0; \
  va_end(arguments)
// NOLINTEND(bugprone-macro-parentheses)

extern "C" {

int open(const char* path, int flags, ...) {
  MODE_OF(flags);
  return open_as("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags);
  return open_as("open64", path, flags, mode);
}
ssize_t write(int fd, const void* data, size_t bytes) {
  auto* const next = real<ssize_t(int, const void*, size_t)>("write");
  const auto* const known = of(fd);
  if (!known || !*known) return next(fd, data, bytes);
  return transfer(fd, bytes, [&](size_t some) { return next(fd, data, some); });
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return transfer(fd, bytes, [&](size_t some) {
    return real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, data, some, offset);
  });
}
ssize_t sendfile(int to, int from, off_t* place, size_t bytes) noexcept {
  return transfer(to, bytes, [&](size_t some) {
    return real<ssize_t(int, int, off_t*, size_t)>("sendfile")(to, from, place, some);
  });
}
ssize_t copy_file_range(int from, off64_t* from_place, int to, off64_t* to_place, size_t bytes,
                        unsigned flags) {
  return transfer(to, bytes, [&](size_t some) {
    return real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range")(
        from, from_place, to, to_place, some, flags);
  });
}
int ftruncate(int fd, off_t size) noexcept {
  note("write", file_of(fd));
  return !is_shared_memory(fd) && fails() ? -1 : real<int(int, off_t)>("ftruncate")(fd, size);
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  note("write", file_of(fd));
  return fails() ? -1 : real<int(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, bytes);
}
int fsync(int fd) {
  if (fails()) return -1;
  note("sync", file_of(fd));
  return 0;  // not really synced: if only the process dies, nothing written is lost
}
int close(int fd) {
  auto* const known = of(fd);
  const bool failing = known && known->exchange(false) && fails();
  const int error = errno;
  const int rc = real<int(int)>("close")(fd);  // Linux closes the descriptor even if the call fails
  if (failing) errno = error;
  return failing ? -1 : rc;
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails()) return -1;
  return noted(
      "link",
      real<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from, to_folder, to, flags),
      from, to);
}
int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : noted("rename", real<int(const char*, const char*)>("rename")(from, to), from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (fails()) return -1;
  return noted("exchange",
               real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from,
                                                                                    to_folder, to, flags),
               from, to);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails() ? -1 : noted("mkdir", real<int(const char*, mode_t)>("mkdir")(path, mode), path);
}
int unlink(const char* path) noexcept {
  return fails() ? -1 : real<int(const char*)>("unlink")(path);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return fails() ? -1 : real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}
int remove(const char* path) noexcept {
  return fails() ? -1 : real<int(const char*)>("remove")(path);
}

}  // extern "C"

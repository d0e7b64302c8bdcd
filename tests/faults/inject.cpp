// A library for LD_PRELOAD that makes a program's calls that change the file system fail, or kills the
// program at them. It knows nothing of Megalith.
//   MEGALITH_FAULT=MODE:NUMBER  acts on the call of this number, from 1: "kill" (a write is half done first),
//                               "short" (a write takes half of its bytes; other calls work as usual), or the
//                               errno with which it fails
//   MEGALITH_FAULT_COUNT=FILE   where a program that ends writes how many such calls it made
// Counted are: open for writing, write and close of a file so opened, pwrite, copy_file_range, sendfile,
// fsync, ftruncate, fallocate, rename, renameat2, linkat, mkdir, unlink, unlinkat, remove.
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

std::atomic<int> calls = 0;
std::array<std::atomic<bool>, 4096> written{};  // by descriptor: opened for writing

std::atomic<bool>* of(int fd) {
  return fd > 2 && static_cast<size_t>(fd) < written.size() ? &written[static_cast<size_t>(fd)] : nullptr;
}

bool hit() {
  return ++calls == wish().number && wish().mode != Mode::kNone;
}

/// For calls that either happen or not. Does not return from a kill.
bool fails() {
  if (!hit() || wish().mode == Mode::kShort) return false;
  if (wish().mode == Mode::kKill) std::raise(SIGKILL);
  errno = wish().error;
  return true;
}

/// For calls that may take some of their bytes: `next` makes the call for a given number of them.
template <class Next>
ssize_t transfer(size_t bytes, const Next& next) {
  if (!hit()) return next(bytes);
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
  return transfer(bytes, [&](size_t some) { return next(fd, data, some); });
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return transfer(bytes, [&](size_t some) {
    return real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, data, some, offset);
  });
}
ssize_t sendfile(int to, int from, off_t* place, size_t bytes) noexcept {
  return transfer(bytes, [&](size_t some) {
    return real<ssize_t(int, int, off_t*, size_t)>("sendfile")(to, from, place, some);
  });
}
ssize_t copy_file_range(int from, off64_t* from_place, int to, off64_t* to_place, size_t bytes,
                        unsigned flags) {
  return transfer(bytes, [&](size_t some) {
    return real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range")(
        from, from_place, to, to_place, some, flags);
  });
}
int ftruncate(int fd, off_t size) noexcept {
  return fails() ? -1 : real<int(int, off_t)>("ftruncate")(fd, size);
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return fails() ? -1 : real<int(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, bytes);
}
int fsync(int) {
  return fails() ? -1 : 0;  // the death of a process loses nothing that was written
}
int close(int fd) {
  auto* const known = of(fd);
  const bool failing = known && known->exchange(false) && fails();
  const int error = errno;
  const int rc = real<int(int)>("close")(fd);  // Linux closes the descriptor even on failure
  if (failing) errno = error;
  return failing ? -1 : rc;
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails()) return -1;
  return real<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from, to_folder, to,
                                                                      flags);
}
int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (fails()) return -1;
  return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from, to_folder,
                                                                              to, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails() ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
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

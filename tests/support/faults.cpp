#include "tests/support/faults.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <map>
#include <new>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith::test {

// Memory that the child shares with its parent, which reads it after the child's death. Several threads of
// the child may write it.
struct FaultWatch::Shared {
  std::atomic<int> calls{0};
  std::atomic<bool> fired{false};
  std::atomic<const char*> call{""};  // the function that the fault hit last (a literal)
};

namespace {

FaultWatch::Shared* shared = nullptr;  // null except in a child process with a fault
Fault fault;
std::vector<FileCall>* call_log = nullptr;                            // null except in run_logged()
std::map<int, std::pair<std::string, size_t>>* open_files = nullptr;  // path and position of each descriptor

// Counts a call. Returns whether the fault hits it.
bool hit(const char* call) {
  if (!shared) return false;
  const int number = ++shared->calls;
  const bool chosen = fault.every.empty()
                          ? number == fault.at
                          : std::find(fault.every.begin(), fault.every.end(), call) != fault.every.end();
  if (!chosen || fault.mode == Fault::kNone) return false;
  const bool can_be_short = std::strcmp(call, "write") == 0 || std::strcmp(call, "pwrite") == 0 ||
                            std::strcmp(call, "copy_file_range") == 0 || std::strcmp(call, "sendfile") == 0;
  if (fault.mode == Fault::kShort && !can_be_short) return false;
  shared->fired = true;
  shared->call = call;
  return true;
}

// For calls that cannot be half done: whether this call has to fail. Does not return if the fault is a kill.
bool fails(const char* call) {
  if (!hit(call)) return false;
  if (fault.mode == Fault::kKill) raise(SIGKILL);
  errno = fault.error;
  return true;
}

/// Whether `fd` is a file or folder, not a socket or pipe. Preserves errno.
bool is_on_disk(int fd) {
  const int before = errno;
  struct stat info {};
  const bool file = fd > 2 && ::fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
  errno = before;
  return file;
}

bool is_nameless(int flags) {
  return (flags & O_TMPFILE) == O_TMPFILE;
}
bool writes(int flags) {
  return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
}

void note(FileCall call) {
  if (call_log) call_log->push_back(std::move(call));
}

void note_open(int fd, const char* path, int flags) {
  if (!call_log || fd < 0) return;
  static int nameless = 0;
  const std::string name = is_nameless(flags) ? concat("nameless-", ++nameless) : path;
  (*open_files)[fd] = {name, 0};
  if ((flags & O_CREAT) || is_nameless(flags)) note({FileCall::kCreate, name, {}, {}, 0});
}

void note_write_at(int fd, const void* data, ssize_t bytes, size_t place) {
  if (!call_log || bytes <= 0 || !open_files->contains(fd)) return;
  note({FileCall::kWrite,
        open_files->at(fd).first,
        {},
        std::string(static_cast<const char*>(data), static_cast<size_t>(bytes)),
        place});
}

void note_write(int fd, const void* data, ssize_t bytes) {
  if (!call_log || bytes <= 0 || !open_files->contains(fd)) return;
  size_t& place = open_files->at(fd).second;
  note_write_at(fd, data, bytes, place);
  place += static_cast<size_t>(bytes);
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

FaultWatch::FaultWatch() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared_ = new (memory) Shared;
}
FaultWatch::~FaultWatch() {
  munmap(shared_, sizeof(Shared));
}

void FaultWatch::arm(const Fault& wanted) {
  fault = wanted;
  shared = shared_;
}
void FaultWatch::disarm() {
  shared = nullptr;
}

int FaultWatch::calls() const {
  return shared_->calls;
}
bool FaultWatch::fired() const {
  return shared_->fired;
}
std::string FaultWatch::call() const {
  return shared_->call.load();
}

FaultRun run_with_fault(const Fault& wanted, const std::function<void()>& body) {
  FaultWatch watch;
  const pid_t child = fork();
  if (child == 0) {
    watch.arm(wanted);
    int code = 0;
    try {
      body();
    } catch (const Error& error) {
      code = exit_code(error.kind());
    } catch (const std::exception&) {
      code = 99;  // no exit code of ours; an app would report "internal"
    }
    FaultWatch::disarm();
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {.calls = watch.calls(),
          .fired = watch.fired(),
          .call = watch.call(),
          .killed = WIFSIGNALED(status),
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0};
}

std::vector<FileCall> run_logged(const std::function<void()>& body) {
  std::vector<FileCall> calls;
  std::map<int, std::pair<std::string, size_t>> files;
  open_files = &files;
  call_log = &calls;
  body();
  call_log = nullptr;
  open_files = nullptr;
  return calls;
}

}  // namespace megalith::test

using namespace megalith::test;  // NOLINT(google-build-using-namespace): below are the C library's functions

namespace {

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) || is_nameless(flags) ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

int open_as(const char* name, const char* path, int flags, mode_t mode) {
  if (writes(flags) && fails(is_nameless(flags) ? "open_nameless" : "open")) return -1;
  const int fd = real<int(const char*, int, ...)>(name)(path, flags, mode);
  note_open(fd, path, flags);
  return fd;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_as("open64", path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  auto* next = real<ssize_t(int, const void*, size_t)>("write");
  if (is_on_disk(fd) && hit("write")) {
    if (fault.mode == Fault::kFail) {
      errno = fault.error;
      return -1;
    }
    const ssize_t written = next(fd, data, std::max<size_t>(bytes / 2, 1));
    if (fault.mode == Fault::kKill) raise(SIGKILL);
    return written;
  }
  const ssize_t written = next(fd, data, bytes);
  note_write(fd, data, written);
  return written;
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  auto* next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (hit("pwrite")) {
    if (fault.mode == Fault::kFail) {
      errno = fault.error;
      return -1;
    }
    const ssize_t written = next(fd, data, std::max<size_t>(bytes / 2, 1), offset);
    if (fault.mode == Fault::kKill) raise(SIGKILL);
    return written;
  }
  const ssize_t written = next(fd, data, bytes, offset);
  note_write_at(fd, data, written, static_cast<size_t>(offset));
  return written;
}

ssize_t sendfile(int to, int from, off_t* place, size_t bytes) noexcept {
  auto* next = real<ssize_t(int, int, off_t*, size_t)>("sendfile");
  if (!hit("sendfile")) return next(to, from, place, bytes);
  if (fault.mode == Fault::kFail) {
    errno = fault.error;
    return -1;
  }
  const ssize_t copied = next(to, from, place, std::max<size_t>(bytes / 2, 1));
  if (fault.mode == Fault::kKill) raise(SIGKILL);
  return copied;
}

ssize_t copy_file_range(int from, off64_t* from_place, int to, off64_t* to_place, size_t bytes,
                        unsigned flags) {
  auto* next = real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  if (!hit("copy_file_range")) return next(from, from_place, to, to_place, bytes, flags);
  if (fault.mode == Fault::kFail) {
    errno = fault.error;
    return -1;
  }
  const ssize_t copied = next(from, from_place, to, to_place, std::max<size_t>(bytes / 2, 1), flags);
  if (fault.mode == Fault::kKill) raise(SIGKILL);
  return copied;
}

int ftruncate(int fd, off_t size) noexcept {
  if (fails("ftruncate")) return -1;
  return real<int(int, off_t)>("ftruncate")(fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (fails("fallocate")) return -1;
  return real<int(int, int, off_t, off_t)>("fallocate")(fd, mode, offset, bytes);
}

int fsync(int fd) {
  if (fails("fsync")) return -1;
  if (call_log && open_files->contains(fd)) note({FileCall::kSync, open_files->at(fd).first, {}, {}, 0});
  return shared || call_log ? 0 : real<int(int)>("fsync")(fd);
}

int close(int fd) {
  const bool failing = is_on_disk(fd) && fails("close");
  const int error = errno;
  const int rc = real<int(int)>("close")(fd);  // Linux closes the descriptor even if the call fails
  if (failing) errno = error;
  return failing ? -1 : rc;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails("linkat")) return -1;
  const int rc =
      real<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from, to_folder, to, flags);
  int fd = -1;
  if (rc == 0 && call_log && std::sscanf(from, "/proc/self/fd/%d", &fd) == 1)
    note({FileCall::kLink, open_files->at(fd).first, to, {}, 0});
  return rc;
}

int rename(const char* from, const char* to) noexcept {
  if (fails("rename")) return -1;
  const int rc = real<int(const char*, const char*)>("rename")(from, to);
  if (rc == 0) note({FileCall::kRename, from, to, {}, 0});
  return rc;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (fails("renameat2")) return -1;
  const int rc = real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from,
                                                                                      to_folder, to, flags);
  if (rc == 0) note({FileCall::kExchange, from, to, {}, 0});
  return rc;
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (fails("mkdir")) return -1;
  const int rc = real<int(const char*, mode_t)>("mkdir")(path, mode);
  if (rc == 0) note({FileCall::kMakeFolder, path, {}, {}, 0});
  return rc;
}

int unlink(const char* path) noexcept {
  if (fails("unlink")) return -1;
  const int rc = real<int(const char*)>("unlink")(path);
  if (rc == 0) note({FileCall::kRemove, path, {}, {}, 0});
  return rc;
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  if (fails("unlinkat")) return -1;
  return real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

int remove(const char* path) noexcept {
  if (fails("remove")) return -1;
  const int rc = real<int(const char*)>("remove")(path);
  if (rc == 0) note({FileCall::kRemove, path, {}, {}, 0});
  return rc;
}

}  // extern "C"

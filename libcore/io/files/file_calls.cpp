#include "libcore/io/files/file_calls.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file_writer.h"

namespace megalith {
namespace {

constexpr std::string_view kMark = ".tmp-";  // separates the output's name from the process id

}  // namespace

void fail_write(const char* doing, const std::string& path) {
  fail(ErrorKind::kIo, path, ": cannot ", doing, ": ", std::strerror(errno));
}

void fail_cut(const std::string& path, uint64_t end, uint64_t size) {
  fail(ErrorKind::kData, path, ": ends at byte ", end, ", but it had ", size,
       " when it was opened; it was changed in between");
}

void sync_to_disk(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL) fail_write("sync", path);  // EINVAL: this file system has no fsync
}

std::string link_of(int fd) {
  return concat("/proc/self/fd/", fd);
}

int make_nameless(const std::string& folder) {
  const int nameless = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (nameless >= 0) return nameless;
  std::string name = folder + "/.scratch-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) fail(ErrorKind::kIo, folder, ": cannot create a temporary file: ", std::strerror(errno));
  ::unlink(name.c_str());
  return named;
}

void append_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), kWritePiece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write("write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
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

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const std::filesystem::path p(path);
  return (p.parent_path() / concat(".", p.filename().string(), kMark, ::getpid(), "-", counter++)).string();
}

std::optional<TemporaryName> parse_temporary_name(std::string_view name) {
  const size_t mark = name.rfind(kMark);
  if (!name.starts_with('.') || mark == std::string_view::npos || mark < 2) return std::nullopt;
  const std::vector<std::string> numbers = split(name.substr(mark + kMark.size()), '-');
  const auto process = parse_int(numbers[0]);
  if (numbers.size() != 2 || !process || !parse_int(numbers[1])) return std::nullopt;
  return TemporaryName{std::string(name.substr(1, mark - 1)), *process};
}

}  // namespace megalith

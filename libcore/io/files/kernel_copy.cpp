#include "libcore/io/files/kernel_copy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <sys/sendfile.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/file_calls.h"

namespace megalith {
namespace {

/// Whether the error means that the call does not support these files, so that another way of copying should
/// be tried.
bool cannot_copy(int error) {
  return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

/// Copies at most 64 MiB inside the kernel. Uses copy_file_range, which shares blocks if both files are on a
/// file system that can, or else sendfile, which also works across file systems. Returns the number of bytes
/// copied, 0 at the end of the source, or nothing if neither call supports these files.
std::optional<size_t> copy_some(const FileBytes& from, const EndOfFile& to) {
  const size_t max_bytes = std::min<uint64_t>(from.bytes, uint64_t{1} << 26);
  for (const bool by_range : {true, false}) {
    auto at = static_cast<off_t>(from.offset);
    const ssize_t n = by_range ? ::copy_file_range(from.file.descriptor(), &at, to.fd, nullptr, max_bytes, 0)
                               : ::sendfile(to.fd, from.file.descriptor(), &at, max_bytes);
    if (n > 0) return static_cast<size_t>(n);
    if (n < 0 && errno == EINTR) return copy_some(from, to);
    if (n < 0 && !cannot_copy(errno))
      fail(ErrorKind::kIo, to.path, ": cannot copy ", from.file.path(), ": ", std::strerror(errno));
    if (n == 0 && !by_range) return 0;  // copy_file_range may also give 0 if it cannot copy
  }
  return std::nullopt;
}

/// Copies at most 64 MiB inside the kernel to a place. Returns the number of bytes copied, or nothing if the
/// kernel cannot: sendfile, too, writes only where the descriptor is.
std::optional<size_t> copy_some(const FileBytes& from, const PlaceInFile& to) {
  const size_t max_bytes = std::min<uint64_t>(from.bytes, uint64_t{1} << 26);
  auto at = static_cast<off_t>(from.offset), place = static_cast<off_t>(to.offset);
  const ssize_t n = ::copy_file_range(from.file.descriptor(), &at, to.fd, &place, max_bytes, 0);
  if (n > 0) return static_cast<size_t>(n);
  if (n < 0 && errno != EINTR && !cannot_copy(errno))
    fail(ErrorKind::kIo, to.path, ": cannot copy ", from.file.path(), ": ", std::strerror(errno));
  return std::nullopt;
}

}  // namespace

void copy_to_place(const FileBytes& from, const PlaceInFile& to,
                   const std::function<void(uint64_t)>& progress) {
  std::string buffer;
  for (uint64_t done = 0; done < from.bytes;) {
    const FileBytes rest{from.file, from.offset + done, from.bytes - done};
    std::optional<size_t> n = copy_some(rest, {to.fd, to.offset + done, to.path});
    if (!n) {
      buffer.resize(std::min<uint64_t>(rest.bytes, kWritePiece));
      from.file.read_at(rest.offset, buffer.data(), buffer.size());
      write_at_place(to.fd, {to.offset + done, buffer.data(), buffer.size()}, to.path);
      n = buffer.size();
    }
    done += *n;
    progress(*n);
  }
}

void copy_to_end(const FileBytes& from, const EndOfFile& to, const std::function<void(uint64_t)>& progress) {
  std::string buffer;
  for (uint64_t done = 0; done < from.bytes;) {
    const FileBytes rest{from.file, from.offset + done, from.bytes - done};
    if (const std::optional<size_t> n = copy_some(rest, to)) {
      if (*n == 0) fail_cut(from.file.path(), rest.offset, from.file.size());
      done += *n;
    } else {
      buffer.resize(std::min<uint64_t>(rest.bytes, kWritePiece));
      from.file.read_at(rest.offset, buffer.data(), buffer.size());
      append_all(to.fd, buffer, to.path);
      done += buffer.size();
    }
    if (progress) progress(done);
  }
}

}  // namespace megalith

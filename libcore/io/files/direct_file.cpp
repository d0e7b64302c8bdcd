#include "libcore/io/files/direct_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace megalith {
namespace {

/// XFS's magic number, which linux/magic.h lacks.
constexpr unsigned kXfs = 0x58465342;
constexpr size_t kWorthDirect = size_t{1} << 16;  // smaller writes go through the page cache
constexpr size_t kOneCall = size_t{4} << 20;

bool is_fast(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return false;
  const auto type = static_cast<unsigned>(info.f_type);
  return type == EXT4_SUPER_MAGIC || type == kXfs || type == OVERLAYFS_SUPER_MAGIC;
}

}  // namespace

DirectFile::DirectFile(int fd, std::string path)
    : fd_(fd),
      direct_(is_fast(fd) ? ::open(link_of(fd).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC) : -1),
      path_(std::move(path)) {}

DirectFile::~DirectFile() {
  if (is_direct()) ::close(direct_);
}

// Writes bytes that do not fill a whole block through the page cache, which may already hold the rest of that
// block.
void DirectFile::write(const BytesToWrite& wish) const {
  const auto* const data = static_cast<const char*>(wish.data);
  const uint64_t begin = wish.offset, end = begin + wish.bytes;
  const uint64_t first = (begin + kBlock - 1) / kBlock * kBlock, last = end / kBlock * kBlock;
  if (!is_direct() || last < first + kWorthDirect) {
    write_cached(wish);
    // Only asks the system to start writing. Errors are ignored: the sync at the end waits for all bytes
    // anyway.
    if (!is_direct())
      ::sync_file_range(fd_, static_cast<off_t>(begin), static_cast<off_t>(wish.bytes),
                        SYNC_FILE_RANGE_WRITE);
    return;
  }
  write_cached({begin, data, first - begin});
  for (uint64_t at = first; at < last; at += kOneCall)
    write_blocks({at, data + (at - begin), std::min<uint64_t>(kOneCall, last - at)});
  write_cached({last, data + (last - begin), end - last});
}

// Writes whole blocks by direct I/O, or through the page cache if the disk needs another alignment.
void DirectFile::write_blocks(const BytesToWrite& wish) const {
  const auto* const data = static_cast<const char*>(wish.data);
  size_t done = 0;
  while (done < wish.bytes) {
    const ssize_t n =
        ::pwrite(direct_, data + done, wish.bytes - done, static_cast<off_t>(wish.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EINVAL) fail_write("write", path_);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  write_cached({wish.offset + done, data + done, wish.bytes - done});
}

}  // namespace megalith

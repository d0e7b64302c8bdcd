#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// System calls that the sources in io/ share, and the names of temporary files.

namespace megalith {

/// Throws kIo with the message "PATH: cannot DOING: REASON"; the reason comes from errno.
[[noreturn]] void fail_write(const char* doing, const std::string& path);

/// Throws kData: the file now ends at byte `end`, but had `size` bytes when it was opened.
[[noreturn]] void fail_cut(const std::string& path, uint64_t end, uint64_t size);

/// A path through which the file open as `fd` can be opened, even if it has no name.
std::string link_of(int fd);

/// Creates a file without a name in the folder, open for reading and writing: it vanishes with its last
/// descriptor. On a file system without O_TMPFILE it has a name for a moment. kIo.
int make_nameless(const std::string& folder);

/// Calls fsync(): the file's bytes then survive a power failure. Throws kIo with `path`.
void sync_to_disk(int fd, const std::string& path);

/// Writes all bytes at the current position, through the page cache. kIo with `path`.
void append_all(int fd, std::string_view bytes, const std::string& path);

struct BytesToWrite {
  uint64_t offset;
  const void* data;
  size_t bytes;
};
/// Writes all bytes at their offset through the page cache, in calls of at most kWritePiece bytes. kIo with
/// `path`; some of the bytes may then have been written.
void write_at_place(int fd, const BytesToWrite& wish, const std::string& path);

struct BytesToRead {
  uint64_t offset;
  void* out;
  size_t bytes;
};
/// Reads bytes at their offset and returns their number, which is smaller than `wish.bytes` only at the end
/// of the file. Throws kIo with `path`.
size_t read_at_place(int fd, const BytesToRead& wish, const std::string& path);

/// A new hidden name in the folder of `path`, ".OUTPUT.tmp-PROCESS-NUMBER", under which AtomicFile and
/// AtomicDirectory write. No other call in this process returns it. But a killed process may have left a file
/// with such a name, and a process in another container may use it.
std::string temporary_name(const std::string& path);
/// The parts of a name from temporary_name().
struct TemporaryName {
  std::string output;   // the output's name, without its folder
  int64_t process = 0;  // number of the process that wrote the file
};
/// Splits a name from temporary_name(), given without its folder. Returns nothing for any other name.
std::optional<TemporaryName> parse_temporary_name(std::string_view name);

}  // namespace megalith

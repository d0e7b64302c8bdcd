#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace megalith {

class ReadableFile;

/// Bytes [offset, offset + bytes) of a file.
struct FileBytes {
  const ReadableFile& file;
  uint64_t offset, bytes;
};
/// A file that is open for writing, positioned at its end; `path` is for messages.
struct EndOfFile {
  int fd;
  const std::string& path;
};
/// Appends bytes of one file to another inside the kernel. The files share blocks if the file system supports
/// that (XFS, btrfs); otherwise the kernel copies. If it can do neither, the bytes go through a buffer. kData
/// if the source ends too early; kIo. `progress` is called with the number of bytes copied so far, at least
/// every 64 MiB.
void copy_to_end(const FileBytes& from, const EndOfFile& to, const std::function<void(uint64_t)>& progress);

}  // namespace megalith

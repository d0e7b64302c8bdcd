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
/// Appends bytes of another file inside the kernel: shared if the file system can (XFS, btrfs), else copied;
/// through a buffer if the kernel can do neither. kData if the source ends too early; kIo. `progress` gets
/// the number of bytes done, every 64 MiB or less.
void copy_to_end(const FileBytes& from, const EndOfFile& to, const std::function<void(uint64_t)>& progress);

}  // namespace megalith

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
/// A file that is open for writing, at its end; `path` is for messages.
struct EndOfFile {
  int fd;
  const std::string& path;
};
/// Appends bytes of another file inside the kernel: shared with it where the file system can (XFS, btrfs),
/// else copied there; through a buffer where the kernel cannot. kData when the source ends before; kIo.
/// `progress` gets the bytes done so far, every 64 MiB or less.
void copy_to_end(const FileBytes& from, const EndOfFile& to, const std::function<void(uint64_t)>& progress);

}  // namespace megalith

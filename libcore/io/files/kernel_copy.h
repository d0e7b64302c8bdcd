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
/// Appends bytes of one file to another inside the kernel. On a file system that supports it (XFS, btrfs),
/// the files share blocks; otherwise the kernel copies the bytes. If the kernel can do neither, the bytes go
/// through a buffer. Calls `progress` with the number of bytes copied so far, at least every 64 MiB. Throws
/// kIo, and kData if the source ends too early.
void copy_to_end(const FileBytes& from, const EndOfFile& to, const std::function<void(uint64_t)>& progress);

/// A place in a file that is open for writing; `path` is for messages.
struct PlaceInFile {
  int fd;
  uint64_t offset;
  const std::string& path;
};
/// As copy_to_end(), but to a place. Several threads may copy to places of one file. Calls `progress` with
/// the number of bytes copied since its last call.
void copy_to_place(const FileBytes& from, const PlaceInFile& to,
                   const std::function<void(uint64_t)>& progress);

}  // namespace megalith

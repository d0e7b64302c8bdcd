#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace megalith {

/// Bytes put aside and read back from the front, as often as wanted: in memory up to a MiB, beyond it in a
/// nameless file in `folder`, which is gone with this object or with the process. Throws kIo.
class ScratchFile {
 public:
  explicit ScratchFile(std::string folder) : folder_(std::move(folder)) {}
  /// In the file `path`, which is left, so that a later object goes on behind the first `kept` bytes that it
  /// holds. kData when there are fewer.
  ScratchFile(std::string path, uint64_t kept);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(const void* data, size_t bytes);
  /// All bytes are in the file and survive a power failure. Only for a file with a name.
  void save();
  uint64_t size() const { return written_ + buffer_.size(); }
  /// All bytes in order, in blocks; each but the last holds a multiple of 64 bytes and at most a MiB.
  void read(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void flush();
  void write_buffer() const;
  void read_at(uint64_t place, std::span<std::byte> out) const;

  std::string folder_;             // or the file's path
  std::vector<std::byte> buffer_;  // the newest bytes
  int descriptor_ = -1;
  uint64_t written_ = 0;  // bytes in the file
};

}  // namespace megalith
